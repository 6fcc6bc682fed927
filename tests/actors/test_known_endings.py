"""What a writer knows of the debates that ended last is what its record tells of them."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_writer import batch, closing, debate_rows, labelled, reply

from moot.actors.record import endings, journal, read_back, tables
from moot.actors.record.closing import Closing, Ended, ModelUsage
from moot.actors.record.endings import recorded_endings
from moot.actors.record.folder import Ownership, RunFolder
from moot.actors.record.known_endings import KnownEndings
from moot.actors.record.part_index import PartIndex
from moot.actors.record.recorder import Recorder
from moot.actors.record.rows import INVALID_SUFFIX
from moot.deploy.running.run import run


async def opened(folder: Path) -> tuple[Recorder, Ownership]:
    folder.mkdir(exist_ok=True)
    (folder / "run.yaml").touch()
    owner = Ownership.take(RunFolder(folder))
    made = Recorder(folder, owner.epoch)
    await made.load()
    return made, owner


async def end(made: Recorder, number: int) -> str:
    """Hold a debate; returns its case's id."""
    case_id = labelled(number).case.id
    await made.register([labelled(number)])
    rows = debate_rows(case_id, "e1")
    made.add_replies(batch(rows))
    assert await made.commit([closing(case_id, {row["path"]: row["reply_id"] for row in rows})]) == [True]
    return case_id


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody read the record."""

    def read(folder: RunFolder, case_ids: Sequence[str], index: PartIndex) -> dict[str, Ended]:
        raise AssertionError(f"the record is read for {case_ids}")

    monkeypatch.setattr(read_back, "recorded_endings", read)


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "_COMMIT_S", 0.01)
        yield


@settings(max_examples=12)
@given(
    lives=st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["m", "n", ""]), st.none() | st.integers(0, 9), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    swapped=st.booleans(),
    repeated=st.booleans(),
)
def test_what_is_known_is_what_is_recorded(
    lives: list[tuple[str, str, int | None, bool]], swapped: bool, repeated: bool
) -> None:
    """Replies that supersede others, with or without an unreadable first one, in whatever order they come."""
    rows, current = list[dict[str, Any]](), dict[str, str]()
    for number, (path, model, tokens, reasked) in enumerate(lives):
        before, now = current.get(path), f"{path}{number}"
        made = [reply("c000", path, now, supersedes=before, model=model or None, prompt_tokens=tokens)]
        if reasked:
            gone = before + INVALID_SUFFIX if before else None
            suffixed = path + INVALID_SUFFIX, now + INVALID_SUFFIX
            made.insert(0, reply("c000", *suffixed, supersedes=gone, model="m", outcome="invalid"))
        rows += reversed(made) if swapped else made
        current[path] = now

    async def told(folder: Path) -> None:
        made, owner = await opened(folder)
        await made.register([labelled(0)])
        for row in rows:
            made.add_replies(batch([row, row] if repeated else [row]))
        fields: dict[str, Any] = {"distribution": {"Yes": 0.1, "No": 0.9}, "flags": ("x",), "wall_s": 0.3}
        await made.commit([closing("c000", current, payload={"of": [1, {"a": None}]}, **fields)])
        known = made._endings.of(["c000"])
        assert known == await made.endings(["c000"]) == recorded_endings(owner.folder, ["c000"], PartIndex())
        await made.close(compact=False)
        owner.release()

    with tempfile.TemporaryDirectory() as place:
        asyncio.run(told(Path(place)))


@pytest.mark.parametrize("protocol", ["selene", "evince", "constructor-auditor"])
def test_what_is_known_of_real_debates_is_what_is_recorded(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, put = dict[str, Closing](), KnownEndings.put
    made = KnownEndings()

    def noted(self: KnownEndings, closing: Closing, usage: dict[str, ModelUsage] | None) -> None:
        ends[closing.case_id] = closing
        put(made, closing, usage)

    monkeypatch.setattr(KnownEndings, "put", noted)
    done = run(task="sample", limit=4, protocol=protocol, engine="inline", seed=5, out=str(tmp_path / "run"))
    assert done.done == len(ends) == 4
    known = made.of(ends)
    assert known == recorded_endings(RunFolder(done.path), list(ends), PartIndex())
    assert all(ended.usage for ended in known.values())


async def test_an_old_case_is_read_beside_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, owner = await opened(tmp_path)
    made._endings = KnownEndings(most=1)
    old, last = await end(made, 0), await end(made, 1)
    reading, go_on, read = threading.Event(), threading.Event(), tables.read_table

    def slow(*args: Any, **options: Any) -> Any:
        reading.set()
        assert go_on.wait(30)
        return read(*args, **options)

    monkeypatch.setattr(endings, "read_table", slow)
    asked = asyncio.create_task(made.endings([old, last]))
    assert await asyncio.to_thread(reading.wait, 30)
    async with asyncio.timeout(20):
        await end(made, 2)
    go_on.set()
    assert (await asked).keys() == {old, last}
    await made.close()
    owner.release()


async def test_the_last_cases_are_told_without_a_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, owner = await opened(tmp_path)
    case_id = await end(made, 0)
    refuse(monkeypatch)
    assert (await made.endings([case_id]))[case_id].closing.answer == "Yes"
    with pytest.raises(AssertionError, match="is read for"):
        await made.endings(["c009"])
    await made.close()
    owner.release()


async def test_a_debate_of_an_earlier_life_is_read(tmp_path: Path) -> None:
    """The writer knows only what has been used since it began."""
    first, owner = await opened(tmp_path)
    rows = debate_rows("c000", "e1")
    await first.register([labelled(0)])
    first.add_replies(batch(rows[:1]))
    await first.close(compact=False)
    owner.release()
    second, owner = await opened(tmp_path)
    await second.register([labelled(0)])
    second.add_replies(batch(rows[1:]))
    await second.commit([closing("c000", {row["path"]: row["reply_id"] for row in rows})])
    assert not second._endings.of(["c000"])
    assert (await second.endings(["c000"]))["c000"].usage == {"simulated": ModelUsage(20, 10)}
    await second.close()
    owner.release()


def test_what_is_known_is_bounded() -> None:
    few, small = KnownEndings(most=2), KnownEndings(most_bytes=2_000)
    for number in range(5):
        few.put(closing(f"c{number}", {}), {})
        small.put(closing(f"c{number}", {}, payload={"text": "x" * 600}), {})
    everything = [f"c{number}" for number in range(5)]
    assert few.of(everything).keys() == {"c3", "c4"}
    assert 0 < len(small.of(everything)) < 4
    few.put(closing("c4", {}, attempt=1), None)
    assert few.of(everything).keys() == {"c3"}
