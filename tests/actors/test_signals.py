"""The running signals: those of the finished record on every engine, after a resume, and whatever did not count."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assessed_debate import Assessed, roles
from houses import hold, sorted_rows
from journal_writer import batch, closing, labelled, reply
from many_settings import key_of, made_cases
from signals_from_record import assert_signals_of
from structlog.testing import capture_logs

from moot.actors.arena import Arena
from moot.actors.record.folder import Ownership, RunFolder
from moot.actors.record.progress import Counts
from moot.actors.record.recorder import Recorder
from moot.actors.record.signal_group import Sampling
from moot.actors.record.signals import Signals
from moot.actors.record.signals_wire import decode_signals, encode_signals
from moot.protocols.case import LabelledCase
from moot.protocols.errors import ConfigError
from moot.protocols.messages import Event

CASES = 60


def cases(count: int = CASES) -> list[LabelledCase]:
    """Some of them fail."""
    return made_cases(count - 5, "assessed") + made_cases(5, "refuses", start=count)


async def until(arena: Arena, ended: int, given: list[Signals]) -> None:
    """Ask for the signals until so many debates have ended, and once more then."""
    archive, counts = arena._runtime.archive, Counts()
    while counts.finished + counts.failed < ended:
        given.append(await archive.signals())
        await asyncio.sleep(0.01)
        counts = await archive.counts()
    given.append(await archive.signals())


async def held(kind: str, folder: Path, labelled: list[LabelledCase], **changes: Any) -> Signals:
    """Hold a run, and what its archive gave as signals when all was done."""
    given = [Signals()]

    async def ask(arena: Arena) -> None:
        await until(arena, len(labelled), given)

    options: dict[str, Any] = {"seed": 4, "key": key_of(cases()), "meanwhile": ask} | changes
    on = options.pop("on", roles())
    await hold(kind, folder, Assessed(), labelled, on, **options)
    assert [one.replies for one in given] == sorted(one.replies for one in given)
    return given[-1]


def assert_same(one: Signals, other: Signals) -> None:
    """Equal but for rounding."""
    assert one.groups() == other.groups()
    for group in one.groups():
        mine, its = one.group(*group), other.group(*group)
        assert (mine.replies, mine.without_logprobs) == (its.replies, its.without_logprobs)
        np.testing.assert_array_equal(mine.bands.counts, its.bands.counts)
        np.testing.assert_allclose(mine.curve.mean, its.curve.mean, rtol=1e-9)
        assert mine.joint.cells.tolist() == its.joint.cells.tolist()
        assert mine.joint.counts.tolist() == its.joint.counts.tolist()
        found, expected = one.correlation(*group), other.correlation(*group)
        np.testing.assert_array_equal(found.n, expected.n)
        np.testing.assert_allclose(found.value, expected.value, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "writers"),
    [
        ("inline", 1),
        pytest.param("packed", 2, marks=pytest.mark.ray),
        pytest.param("actors", 3, marks=pytest.mark.ray),
    ],
)
async def test_the_running_signals_end_as_those_of_the_record(
    kind: str, writers: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind != "inline":
        request.getfixturevalue("local_ray")
    signals = await held(kind, tmp_path / "run", cases(), writers=writers)
    assert signals.replies == 2 * (CASES - 5)
    assert_signals_of(signals, tmp_path / "run")
    correlations = signals.correlation("even", "constructor")
    assert (~np.isnan(correlations.value)).sum() > 100
    lines = str(correlations).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("logprob.first-3.mean")
    assert signals.group("even", "auditor").without_logprobs == signals.group("even", "auditor").replies > 0
    divergences = signals.divergences("even", "auditor")
    assert divergences.confident_but_weak.n == 0
    assert divergences.good_but_wrong.n > 0


async def test_a_run_that_was_gone_on_with_ends_with_the_same_signals(tmp_path: Path) -> None:
    # Auditors answer at once: whenever it is stopped, constructors are waited for, and their debates stay open.
    slowly: dict[str, Any] = {"on": roles(constructor="simulated?latency_ms=100"), "max_open": 6}
    whole = await held("inline", tmp_path / "whole", cases(), **slowly)

    async def stop(arena: Arena, ended: int) -> None:
        await until(arena, ended, [])
        arena.stop()

    for ended in (20, 40):
        await held("inline", tmp_path / "parts", cases(), **slowly, meanwhile=partial(stop, ended=ended))
        begun, over = (
            {row["case_id"] for row in sorted_rows(tmp_path / "parts", table)} for table in ("tokens", "verdicts")
        )
        assert begun - over, "no debate was open"
    signals = await held("inline", tmp_path / "parts", cases(), **slowly)
    assert_signals_of(signals, tmp_path / "parts")
    assert_same(signals, whole)


async def test_only_attempts_that_did_not_fail_count(tmp_path: Path) -> None:
    class Once(Assessed):
        """Refuses in its first run."""

        refusing = True

        async def run(self, case: Any, floor: Any) -> Any:
            verdict = await super().run(case, floor)
            assert not (self.refusing and case.id.endswith("3")), "it refuses"
            return verdict

    protocol, all_cases, seen = Once(), made_cases(14, "assessed"), list[Signals]()

    async def end(arena: Arena) -> None:
        given: list[Signals] = []
        await until(arena, 14 if protocol.refusing else 16, given)
        seen.append(given[-1])

    options: dict[str, Any] = {"key": key_of(all_cases), "meanwhile": end, "retry_failed": True}
    await hold("inline", tmp_path / "run", protocol, all_cases, roles(), **options)
    protocol.refusing = False
    await hold("inline", tmp_path / "run", protocol, all_cases, roles(), **options)
    assert [one.replies for one in seen] == [24, 28]
    assert_signals_of(seen[1], tmp_path / "run")


@pytest.mark.parametrize("save_tokens", ["chosen", "none"])
async def test_without_saved_tokens_no_log_probability_reaches_the_writer(tmp_path: Path, save_tokens: str) -> None:
    signals = await held("inline", tmp_path / "run", cases(20), save_tokens=save_tokens)
    group = signals.group("odd", "constructor")
    assert group.without_logprobs == (group.replies if save_tokens == "none" else 0)
    assert_signals_of(signals, tmp_path / "run")


# --- one writer, row by row ---


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """The folder of a run that nobody owns yet."""
    found = RunFolder(tmp_path / "run")
    found.path.mkdir()
    (found.path / "run.yaml").write_text("test: true\n")
    return found


def assessment(case: int, quality: float = 7.0, path: str = "a", at: float = 1.0) -> tuple[str, int, Event, float]:
    """What judges found of a reply."""
    told = {"reply": path, "role": "constructor", "domain": "m", "scores": {"x": quality / 3}, "flag": 0.0}
    return f"c{case:03d}", 0, Event("assessment", f"assessment/{path}", told | {"quality": quality}), at


def said(case: int, reply_id: str, logprobs: list[float] | None, **columns: Any) -> Any:
    """A batch of one reply."""
    tokens = {} if logprobs is None else {"token": ["t"] * len(logprobs), "logprob": logprobs}
    return batch([reply(f"c{case:03d}", "a", reply_id, temperature=0.3, top_p=0.9, **tokens, **columns)])


async def loaded(folder: RunFolder) -> tuple[Recorder, Ownership]:
    """A recorder of a new owner."""
    owner = Ownership.take(folder)
    recorder = Recorder(folder.path, owner.epoch)
    await recorder.load()
    return recorder, owner


async def left(recorder: Recorder, owner: Ownership) -> None:
    """End as a process does that is killed after a flush."""
    await recorder.flush()
    for segment in recorder._journal._segments.values():
        segment.close()
    owner.release()


async def test_an_open_debate_is_gone_on_with_from_the_record(folder: RunFolder) -> None:
    recorder, owner = await loaded(folder)
    recorder.register([labelled(0), labelled(1)])
    recorder.add_replies(said(0, "r0", [-0.5, -1.5]))
    recorder.add_replies(said(1, "r1", [-0.25]))
    recorder.add_events([assessment(0)])
    await left(recorder, owner)

    recorder, owner = await loaded(folder)
    recorder.register([labelled(0), labelled(1)])
    recorder.add_events([assessment(0, at=2.0), assessment(1, quality=9.0)])  # the first is noted again by the replay
    assert (await recorder.signals.signals()).replies == 0
    assert await recorder.commit([closing("c000", {"a": "r0"}), closing("c001", {"a": "r1"})]) == [True, True]
    signals = await recorder.signals.signals()
    assert (signals.replies, signals.group("m", "constructor").without_logprobs) == (2, 0)
    assert signals.bands("m", "constructor").mean[[0, 100]].tolist() == [-0.375, -0.875]
    await left(recorder, owner)

    recorder, owner = await loaded(folder)
    assert_same(await recorder.signals.signals(), signals)
    await recorder.close()
    owner.release()
    recorder, owner = await loaded(folder)  # now from Parquet
    assert_same(await recorder.signals.signals(), signals)
    await recorder.close()
    owner.release()


async def test_of_a_superseded_reply_the_new_one_counts(folder: RunFolder) -> None:
    recorder, owner = await loaded(folder)
    recorder.register([labelled(0), labelled(1)])
    for case in (0, 1):
        recorder.add_replies(said(case, f"old{case}", [-5.0, -5.0]))
        recorder.add_replies(said(case, f"late{case}", [-7.0]))
    recorder.add_replies(said(0, "new0", [-1.0], supersedes="old0"))
    recorder.add_replies(said(1, "new1", None, supersedes="old1"))
    recorder.add_events([assessment(0, quality=3.0), assessment(1), assessment(0, quality=8.0, at=2.0)])
    await recorder.commit([closing("c000", {"a": "new0"}), closing("c001", {"a": "new1"})])
    signals = await recorder.signals.signals()
    group = signals.group("m", "constructor")
    assert (group.replies, group.without_logprobs) == (2, 1)
    assert set(signals.bands("m", "constructor").mean.tolist()) == {-1.0}
    assert sorted(group.joint.quality().tolist()) == [7.0, 8.0]
    await left(recorder, owner)
    recorder, owner = await loaded(folder)
    assert_same(await recorder.signals.signals(), signals)
    await left(recorder, owner)


async def test_odd_values_and_odd_events_stop_nothing(folder: RunFolder) -> None:
    recorder, owner = await loaded(folder)
    recorder.register([labelled(number) for number in range(3)])
    for case, tokens in enumerate(([float("-inf"), -1.0, -1.0], [], [-9999.0])):
        recorder.add_replies(said(case, f"r{case}", tokens))
    with capture_logs() as logs:
        recorder.add_events([assessment(0), assessment(1), assessment(2)])
        recorder.add_events([("c000", 0, Event("assessment", "elsewhere", {"mine": True}), 1.0)])
        recorder.add_events([assessment(0, path="never said")])
    assert [line["case"] for line in logs] == ["c000"]
    await recorder.commit([closing(f"c{number:03d}", {"a": f"r{number}"}) for number in range(3)])
    signals = await recorder.signals.signals()
    group = signals.group("m", "constructor")
    assert (group.replies, group.without_logprobs) == (4, 2)
    assert signals.bands("m", "constructor").n[[0, 100]].tolist() == [0, 1]
    assert signals.divergences("m", "constructor").unsure_but_right.n == 0
    await left(recorder, owner)


async def test_replies_under_different_temperatures_are_not_pooled(folder: RunFolder) -> None:
    recorder, owner = await loaded(folder)
    recorder.register([labelled(number) for number in range(3)])
    recorder.add_replies(said(0, "r0", [-1.0]))
    hot = reply("c001", "a", "r1", temperature=1.0, top_p=0.9, token=["t"], logprob=[-3.0])
    recorder.add_replies(batch([hot, reply("c002", "a", "r2", temperature=0.7)]))
    recorder.add_events([assessment(number) for number in range(3)])
    await recorder.commit([closing(f"c{number:03d}", {"a": f"r{number}"}) for number in range(3)])
    signals = await recorder.signals.signals()
    cool = Sampling(0.3, 0.9)
    assert signals.samplings("m", "constructor") == [cool, Sampling(1.0, 0.9)]
    with pytest.raises(ConfigError, match="sampled in several ways"):
        signals.bands("m", "constructor")
    with pytest.raises(ConfigError, match="known"):
        signals.bands("m", "constructor", Sampling(0.5, None))
    with pytest.raises(ConfigError, match="did you mean 'm/constructor'"):
        signals.correlation("m", "construct")
    assert set(signals.bands("m", "constructor", cool).mean.tolist()) == {-1.0}
    assert (signals.group("m", "constructor", cool).replies, signals.replies) == (2, 3)
    again = decode_signals(encode_signals(signals))
    assert again.kept.keys() == signals.kept.keys()
    assert repr(again.divergences("m", "constructor", cool)) == repr(signals.divergences("m", "constructor", cool))
    await left(recorder, owner)


async def test_who_stops_asking_takes_nothing_along(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, owner = await loaded(folder)
    recorder.register([labelled(number) for number in range(3)])
    monkeypatch.setattr("moot.actors.record.signal_keeper.FOLD_TOKENS", 3)
    for number in range(3):
        recorder.add_replies(said(number, f"r{number}", [-1.0, -2.0]))
        recorder.add_events([assessment(number)])
        await recorder.commit([closing(f"c{number:03d}", {"a": f"r{number}"})])
        asking = asyncio.create_task(recorder.signals.signals())
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
    assert (await recorder.signals.signals()).replies == recorder.signals.replies == 3
    await left(recorder, owner)


async def test_nothing_is_kept_of_what_can_no_longer_be_judged(folder: RunFolder) -> None:
    recorder, owner = await loaded(folder)
    recorder.register([labelled(0), labelled(1)])
    shared = reply("shared-abc", "shared", "s", token=["t"], logprob=[-1.0])
    recorder.add_replies(batch([shared, reply("c001", "shared", "r1", token=["t"], logprob=[-1.0])]))
    recorder.add_replies(said(0, "r0", [-1.0]))
    assert recorder.signals._debates.keys() == {("c000", 0), ("c001", 0)}
    await left(recorder, owner)
    recorder, owner = await loaded(folder)
    assert recorder.signals._debates.keys() == {("c000", 0), ("c001", 0)}
    recorder.register([labelled(0), labelled(1)])
    assert all(await recorder.commit([closing("c000", {"a": "r0"}), closing("c001", {"shared": "r1"})]))
    assert not recorder.signals._debates
    assert (await recorder.signals.signals()).replies == recorder.signals.replies == 0
    await left(recorder, owner)
