"""Writer of a small journal, in a process that a failpoint may kill.

Every debate has two replies, an event and a verdict. Each case id is printed on a line once its commit has returned, so
that it is known to be durable. Run again on the same folder, it resumes the debates without a verdict.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from moot.actors.record import journal
from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.rows import RowBuffer
from moot.actors.record.schema import KEYS, TABLES
from moot.actors.record.sealed_yaml import seal_yaml
from moot.actors.record.signals import Signals
from moot.actors.record.tables import read_table
from moot.actors.telemetry import failpoints
from moot.actors.telemetry.meter import SILENT, Meter
from moot.metrics.online.value_histogram import ValueHistogram
from moot.protocols.case import Case, LabelledCase
from moot.protocols.messages import Event


def reply(case_id: str, path: str, reply_id: str, **columns: Any) -> dict[str, Any]:
    """Row of the stream `replies`; with `token`, one with tokens."""
    row: dict[str, Any] = {
        "case_id": case_id,
        "attempt": 0,
        "path": path,
        "role": "agent/0",
        "model": "simulated",
        "fingerprint": "f",
        "outcome": "ok",
        "data": "{}",
        "text": f"{case_id} {path}",
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "reply_id": reply_id,
        "at": time.time(),
    }
    return row | columns


def batch(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as one Arrow batch."""
    gathered = RowBuffer("replies")
    for row in rows:
        gathered.append(**row)
    return gathered.flush()


def labelled(number: int) -> LabelledCase:
    """A case with the gold label `Yes`."""
    return LabelledCase(Case(id=f"c{number:03d}", question=f"q{number}", labels=("Yes", "No")), number, "Yes")


def debate_result(case_id: str, replies: dict[str, str], **fields: Any) -> DebateResult:
    """A verdict based on `replies`."""
    defaults: dict[str, Any] = {"attempt": 0, "answer": "Yes", "how": "vote"}
    return DebateResult(case_id=case_id, replies=replies, **(defaults | fields))


def debate_rows(case_id: str, incarnation: str) -> list[dict[str, Any]]:
    """The two replies of a debate: one with tokens, and one of a judge."""
    score = '{"support":"supported","score":0.5,"rationale":""}'
    return [
        reply(case_id, "a", f"{incarnation}-{case_id}-a", token=["x", "y"], logprob=[-0.5, -1.0]),
        reply(case_id, "j/judge/0", f"{incarnation}-{case_id}-j", role="judge/0", data=score),
    ]


def new_run(path: Path) -> RunFolder:
    """Folder of a run without owner."""
    path.mkdir(exist_ok=True)
    (path / "run.yaml").write_bytes(seal_yaml({"test": True}))
    return RunFolder(path)


@asynccontextmanager
async def open_writer(
    folder: RunFolder, *, compact: bool = True, leftovers: bool = False, meter: Meter = SILENT
) -> AsyncIterator[RecordWriter]:
    """Record writer of a new owner, loaded; at the end its journal is compacted, or left as by a killed process.

    Args:
        compact: whether the journal is compacted at the end.
        leftovers: whether the journals of earlier owners are compacted first.
        meter: the writer's meter.
    """
    owner = Ownership.acquire(folder)
    try:
        if leftovers:
            compact_leftovers(folder, owner.epoch)
        writer = RecordWriter(folder.path, owner.epoch, meter=meter)
        await writer.load()
        yield writer
        if compact:
            await writer.close()
        else:
            await abandon_journal(writer)
    finally:
        owner.release()


async def abandon_journal(writer: RecordWriter) -> None:
    """Leave the journal as a process does that is killed after a flush."""
    await writer.flush()
    for segment in writer._journal._segments.values():
        segment.abandon()


async def submit_case(writer: RecordWriter, number: int, incarnation: str = "e1") -> dict[str, str]:
    """Register a case and add its replies; returns the replies' ids by path, on which its verdict is based."""
    case = labelled(number)
    await writer.register([case])
    rows = debate_rows(case.case.id, incarnation)
    writer.add_replies(batch(rows))
    writer.add_events([(case.case.id, 0, Event("signal", "here", {"n": number}), 1.0)])
    return {row["path"]: row["reply_id"] for row in rows}


async def debated(writer: RecordWriter, numbers: Iterable[int], incarnation: str = "e1") -> None:
    """Debates with durable verdicts."""
    replies = {f"c{number:03d}": await submit_case(writer, number, incarnation) for number in numbers}
    assert all(await writer.commit([debate_result(case_id, rest) for case_id, rest in replies.items()]))


def assert_whole(folder: Path) -> None:
    """Assert that every key is present once, and every verdict with its case, replies, tokens and judgments."""
    rows = {table: read_table(folder, table).to_pylist() for table in TABLES}
    for table, key in KEYS.items():
        found = [tuple(row[name] for name in key) for row in rows[table]]
        assert len(found) == len(set(found)), table
    verdicts = {row["case_id"] for row in rows["verdicts"]}
    for table, count in (("cases", 1), ("turns", 2), ("tokens", 1), ("judgments", 1), ("events", 1)):
        ids = Counter(row["case_id"] for row in rows[table])
        assert all(ids[case_id] == count for case_id in verdicts), table


async def session(folder: RunFolder, numbers: Iterable[int], *, compact: bool = True) -> None:
    """Run debates in sequence under a new owner, who first compacts earlier journals."""
    async with open_writer(folder, compact=compact, leftovers=True) as writer:
        for number in numbers:
            await debated(writer, [number], f"e{len(folder.epochs())}")


async def write(folder: Path, debates: int) -> None:
    """Run every debate without a verdict."""
    record = RunFolder(folder)
    async with open_writer(record, leftovers=True) as writer:
        async for case_id in resume(record, writer, debates, f"e{len(record.epochs())}"):
            print(case_id, flush=True)
    print("closed", flush=True)


async def resume(record: RunFolder, writer: RecordWriter, debates: int, incarnation: str) -> AsyncIterator[str]:
    """Run every debate without a verdict; yields the id of each whose verdict is durable."""
    done = set(read_table(record, "verdicts", [])["case_id"].to_pylist())
    for case in map(labelled, range(debates)):
        if case.case.id not in done:
            await writer.register([case])
            await _debate(writer, case.case.id, incarnation)
            yield case.case.id


async def _debate(writer: RecordWriter, case_id: str, incarnation: str) -> None:
    known = {reply.path: reply.answered.reply_id for reply in (await writer.history([(case_id, 0)]))[0].replies}
    rows = [row for row in debate_rows(case_id, incarnation) if row["path"] not in known]
    writer.add_events([(case_id, 0, Event("signal", "here", {"of": case_id}), time.time())])
    if rows:
        writer.add_replies(batch(rows))
    replies = known | {row["path"]: row["reply_id"] for row in rows}
    assert (await writer.commit([debate_result(case_id, replies)])) == [True]


def write_journal(folder: Path, debates: int) -> None:
    """Work of such a process."""
    journal._COMMIT_S = 0.01
    asyncio.run(write(folder, debates))


def assert_same_signals(one: Signals, other: Signals) -> None:
    """Assert that signals are equal up to rounding."""
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
    rounds = one.round_sums, other.round_sums
    assert rounds[0].left_out == rounds[1].left_out
    assert_same_histograms(rounds[0].kept, rounds[1].kept)
    assert one.speakers() == other.speakers()
    assert one.tokens.left_out == other.tokens.left_out
    for speaker in one.speakers():
        spoken, same = one.tokens.kept[speaker], other.tokens.kept[speaker]
        assert spoken.replies == same.replies
        np.testing.assert_array_equal(spoken.along.counts, same.along.counts)
        np.testing.assert_allclose(spoken.curve.mean, same.curve.mean, rtol=1e-9)
        assert_same_histograms(spoken.by_round, same.by_round)


def assert_same_histograms(some: Mapping[Any, ValueHistogram], others: Mapping[Any, ValueHistogram]) -> None:
    """Assert that histograms are equal by key, up to rounding of their sums."""
    assert some.keys() == others.keys()
    for key, one in some.items():
        other = others[key]
        assert (one.bins.tolist(), one.counts.tolist()) == (other.bins.tolist(), other.counts.tolist()), key
        assert one.unknown == other.unknown, key
        assert one.mean == pytest.approx(other.mean, rel=1e-9, abs=1e-9, nan_ok=True), key


_SERVER = multiprocessing.get_context("forkserver")
# In Python 3.11 the server does not get the path of who starts it: it finds what is installed.
_SERVER.set_forkserver_preload(["moot.actors.record.compaction", "moot.actors.record.record_writer"])


@dataclass(frozen=True)
class ProcessResult:
    """Exit and output of a process; `returncode` is minus the signal that killed it."""

    returncode: int
    stdout: str
    stderr: str


def run_forked(work: Callable[..., object], *args: Any, **environment: str) -> ProcessResult:
    """Run `work` in a process with its own environment, failpoints and output, and wait for its end.

    Args:
        work: a function of a module that the process can import.
        environment: additional environment variables.
    """
    with TemporaryDirectory() as place:
        said = [Path(place) / name for name in ("stdout", "stderr")]
        process = _SERVER.Process(target=_child, args=(work, args, said, environment))
        process.start()
        process.join(120)
        if process.is_alive():
            process.kill()
            process.join()
        assert process.exitcode is not None
        return ProcessResult(process.exitcode, *(file.read_text("utf-8") for file in said))


def _child(work: Callable[..., object], args: Any, said: list[Path], environment: Mapping[str, str]) -> None:
    for number, file in enumerate(said, start=1):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.update(environment)
    sys.path[:0] = os.environ.get("PYTHONPATH", "").split(os.pathsep)  # as in a process that was started
    failpoints._PLAN = failpoints._plan(environment.get("MOOT_FAILPOINTS", ""))
    work(*args)
