"""Walk over all files of a record: whatever is flipped, cut or deleted, every reader gives equal data or one clear
error, and then `verify` does, too."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from damage import flipped
from journal_writer import batch, debate_result, debate_rows, labelled, new_run, open_writer
from small_runs import sorted_rows

from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.folder import RunFolder
from moot.actors.record.follow import RecordFollower
from moot.actors.record.ownership import Ownership
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.recorded_run import RecordedRun
from moot.actors.record.run_yaml import SALVAGED, read_run_yaml
from moot.actors.record.salvage import salvage
from moot.actors.record.schema import ABANDONED, ASKED, TABLES
from moot.actors.record.verify import verify
from moot.protocols.errors import RecordError
from moot.protocols.messages import Event

Rows = dict[str, list[dict[str, Any]]]
Harm = tuple[str, Callable[[bytes], bytes | None]]
"""Its name, and what it leaves of a file; None for no file."""

DEBATES, OPEN = 2, 50


async def _debates(writer: RecordWriter, first: int) -> None:
    """Debates that are flushed one by one, and one without a verdict."""
    for number in range(first, first + DEBATES):
        case = labelled(number)
        key = (case.case.id, 0)
        await writer.register([case])
        rows = debate_rows(case.case.id, f"e{first}")
        writer.add_events([(*key, Event(ASKED, row["path"]), 1.0) for row in rows])
        await writer.flush()
        writer.add_replies(batch(rows))
        writer.add_events([(*key, Event("signal", "here", {"n": number}), 2.0)])
        writer.add_vectors(*key, "e", [("h", b"\0\0\x80?" * 4)])
        await writer.flush()
        replies = {row["path"]: row["reply_id"] for row in rows}
        said = debate_result(key[0], replies, calls=2, prompt_tokens=20, completion_tokens=10)
        assert await writer.commit([said]) == [True]
    await writer.register([labelled(first + OPEN)])
    writer.add_replies(batch(debate_rows(labelled(first + OPEN).case.id, f"e{first}")[:1]))


async def _sessions(folder: RunFolder, *compacted: bool) -> None:
    """Sessions of as many owners, whose journals are compacted at the end or left as by a killed process."""
    for number, compact in enumerate(compacted):
        async with open_writer(folder, compact=compact) as writer:
            await _debates(writer, number * DEBATES)
            if not compact:
                await writer.flush()


def _killed(folder: RunFolder) -> None:
    """A part, and the segments of a killed process."""
    asyncio.run(_sessions(folder, True, False))


def _taken_over(folder: RunFolder) -> None:
    """Segments of a killed process, of which an owner has taken over nothing but the folder, and those of another."""
    asyncio.run(_sessions(folder, False, False))


def _resumed(folder: RunFolder) -> None:
    """Parts of a killed process, made by its successor, and of the successor itself."""
    asyncio.run(_sessions(folder, False, True))
    owner = Ownership.acquire(folder)
    compact_leftovers(folder, owner.epoch)
    owner.release()


MADE = {"killed": _killed, "taken over": _taken_over, "resumed": _resumed}


@pytest.fixture(scope="module", params=MADE)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record that is damaged and mended in place."""
    folder = new_run(tmp_path_factory.mktemp("written") / "run")
    MADE[request.param](folder)
    return folder.path


def rows_of(run: Path) -> Rows:
    """Everything that is on record."""
    return {table: sorted_rows(run, table) for table in TABLES} | {"run.yaml": [read_run_yaml(RunFolder(run))]}


def files_of(run: Path) -> list[Path]:
    """All files of the record."""
    return sorted(path for path in run.rglob("*") if path.is_file())


def harms(content: bytes, cuts: int, flips: int) -> Iterator[Harm]:
    """Damage of one file: it is deleted, cut at every frame and at so many other places, or one of so many bits is
    flipped."""
    size = len(content)
    yield "deleted", lambda _: None
    frames = [at for at in range(size) if content.startswith(b"moot", at)]
    for at in sorted({0, 1, size - 1, *frames, *range(0, size, max(1, size // cuts))}):
        yield f"cut at {at}", partial(_cut, at=at)
    yield "its end is zeros", lambda raw: raw[: size // 2] + bytes(size - size // 2)
    for bit in sorted({0, 8 * size - 1, *range(7, 8 * size, max(1, 8 * size // flips))}):
        yield f"bit {bit}", partial(flipped, bit=bit)


def _cut(raw: bytes, at: int) -> bytes:
    return raw[:at]


def outcome(run: Path, whole: Rows) -> str:
    """What readers and `verify` say of a damaged record; `equal` and `error` are right."""
    try:
        RecordedRun(run)
        follower = RecordFollower(
            RunFolder(run), {name: ["case_id"] for name in ("cases", "turns", "events", "verdicts")}
        )
        read = sum(added.rows.num_rows for added in follower.read())
        follower.close()
        found = rows_of(run)
    except RecordError:
        return "error" if _is_damaged(run) else "error that verify does not know"
    expected = sum(len(whole[table]) for table in ("cases", "turns", "events", "verdicts"))
    verify(RunFolder(run))
    return "equal" if found == whole and read == expected else "other data"


def _is_damaged(run: Path) -> bool:
    try:
        return bool(verify(RunFolder(run)).faults)
    except RecordError:
        return not (run / "run.yaml").exists()


def _walk(run: Path, density: int, every: int) -> Iterator[tuple[str, Path, bytes, bytes | None]]:
    """Every so many of all harms: its name, the file, and what is in it before and after."""
    number = 0
    for file in files_of(run):
        before = file.read_bytes()
        for name, harm in harms(before, density, density):
            number += 1
            if number % every == 0:
                yield f"{file.relative_to(run)}, {name}", file, before, harm(before)


def _put(file: Path, content: bytes | None) -> None:
    file.unlink() if content is None else file.write_bytes(content)


SOME = pytest.param(3, 17)
MORE = pytest.param(5, 2, marks=pytest.mark.slow)


@pytest.mark.parametrize(("density", "every"), [SOME, MORE])
def test_damage_is_an_error_or_changes_nothing(written: Path, density: int, every: int) -> None:
    whole, wrong = rows_of(written), []
    assert verify(RunFolder(written)).faults == []
    for name, file, before, after in _walk(written, density, every):
        _put(file, after)
        if (found := outcome(written, whole)) not in ("equal", "error"):
            wrong.append(f"{name}: {found}")
        _put(file, before)
    assert wrong == []


@pytest.mark.parametrize(("density", "every"), [pytest.param(2, 41), pytest.param(3, 5, marks=pytest.mark.slow)])
def test_salvage_keeps_what_is_intact(written: Path, density: int, every: int, tmp_path: Path) -> None:
    whole, wrong = rows_of(written), []
    for number, (name, file, _, after) in enumerate(_walk(written, density, every)):
        if file.name == "run.yaml":  # nothing else states its content: a person restores it
            continue
        run = Path(shutil.copytree(written, tmp_path / str(number)))
        _put(run / file.relative_to(written), after)
        damaged = bool(verify(RunFolder(run)).faults)
        report = salvage(RunFolder(run))
        found, faults = rows_of(run), verify(RunFolder(run)).faults
        found["events"] = [row for row in found["events"] if row["kind"] != ABANDONED]
        made_up = [table for table in TABLES for row in found[table] if row not in whole[table]]
        noted = bool(found["run.yaml"][0].get(SALVAGED))
        if faults or made_up or not (damaged == noted == bool(report)) or (not damaged and found != whole):
            wrong.append(f"{name}: {faults}, {made_up}, {report}")
        shutil.rmtree(run)
    assert wrong == []
