"""Runs that lose processes: the record ends as if nothing had happened, and the server tells what was paid twice.

The oracle is the simulated model's HTTP server, which counts the calls that it served by step key; the record is never
asked how often something was paid.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from simulate_process import serving, undisturbed, verdicts, write_questions
from small_runs import ENCODER, stable_rows

from moot.actors.record.folder import RunFolder
from moot.actors.record.journal import FLUSH_ROWS
from moot.actors.record.tables import read_table
from moot.actors.remote.record_client import ROWS_PER_BATCH
from moot.deploy.runs.run import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

CASES = 160
OPEN = 8
AGENTS = 3
MOST_STARTS = 6
SEED = 11

PLANS = {
    "actors": [
        "agent.received:60",
        "agent.sent_to_writer:4",
        "agent.sent_to_moderator:9",
        "judge.received:15",
        "judge.sent_to_writer:2",
        "moderator.debate_closed:10",
        "moderator.committed:12",
        "segment.torn:9",
    ],
    "packed": [
        "agent.received:60",
        "agent.sent_to_writer:5",
        "judge.received:15",
        "moderator.debate_closed:10",
        "moderator.committed:12",
        "writer.buffered:6",
        "writer.flushed:4",
        "segment.torn:9",
        "driver.fed:20",
        "compaction.manifest_written:1",
    ],
}
"""By placement. A process that is killed counts from one again. Where agents are actors `test_chaos` kills the driver;
`test_record` kills the writer at every step of a compaction."""

IN_FLIGHT = OPEN * AGENTS
MOST_PAID_AGAIN = {
    # An agent or moderator takes with it the calls under way and the rows that wait for its next batch;
    "agent": IN_FLIGHT + ROWS_PER_BATCH,
    "judge": IN_FLIGHT + ROWS_PER_BATCH,
    "moderator": IN_FLIGHT + ROWS_PER_BATCH,
    # a writer takes what it has not flushed, the driver takes everybody;
    "writer": IN_FLIGHT + FLUSH_ROWS,
    "segment": IN_FLIGHT + FLUSH_ROWS,
    "driver": IN_FLIGHT + ROWS_PER_BATCH + FLUSH_ROWS,
    # and when the journal is compacted nothing is under way any more.
    "compaction": 0,
}


def run_until_done(folder: Path, task: str, model: str, placement: str, **env: str) -> None:
    """Start the same command again until it ends in order."""
    command = [sys.executable, "-m", "moot", "run", "--task", task, "--model", model, "--seed", str(SEED)]
    command += ["--encoder", ENCODER]
    command += ["--placement", placement, "--out", str(folder), "--max-open", str(OPEN), "--quiet"]
    for _ in range(1, MOST_STARTS):
        done = subprocess.run(
            command, env={**os.environ, **env}, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode == 0:
            return
        assert done.returncode == -signal.SIGKILL, f"exit {done.returncode}: {done.stderr[-2000:]}"
    raise AssertionError("the run never ended in order")


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The questions of all runs."""
    return write_questions(tmp_path_factory.mktemp("task") / "made.jsonl", CASES)


@pytest.fixture(scope="module")
def expected(task: str, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The verdicts of a run that nobody disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    return undisturbed(task, folder, "--seed", str(SEED), "--encoder", ENCODER)


@pytest.mark.parametrize("placement", PLANS)
def test_kills_at_every_failpoint(placement: str, task: str, expected: list[dict[str, Any]], tmp_path: Path) -> None:
    plan = PLANS[placement]
    assert len(expected) == CASES
    marks = tmp_path / "marks"
    marks.mkdir()
    with serving(task, SEED, latency_ms=15, jitter_ms=20) as server:
        folder = tmp_path / "run"
        run_until_done(
            folder, task, server.model, placement, MOOT_FAILPOINTS=",".join(plan), MOOT_FAILPOINT_DIR=str(marks)
        )
        served = server.served()
    assert sorted(path.name for path in marks.iterdir()) == sorted(entry.replace(":", "-") for entry in plan)
    assert verdicts(folder) == expected
    turns = read_table(RunFolder(folder), "turns", ["outcome"])
    steps = [f"{row['case_id']}/{row['attempt']}/{row['path']}" for row in turns.to_pylist()]
    assert len(steps) == len(set(steps))
    assert set(steps) <= set(served)
    again = sum(served.values()) - len(served)
    allowed = sum(MOST_PAID_AGAIN[entry.partition(".")[0]] for entry in plan)
    print(f"{placement}: {len(plan)} kills, {again} of {len(served)} calls served again, {allowed} allowed")
    assert again <= min(allowed, len(served) // 3)


@pytest.mark.smoke
def test_a_killed_run_resumes_to_the_same_record(tmp_path: Path) -> None:
    settings = {"topics.count": 2, "max_rounds": 2}
    command = [sys.executable, "-m", "moot", "run", "--engine", "inline", "--quiet", "--protocol", "socrasynth"]
    command += ["--limit", "3", "--out", str(tmp_path / "killed")]
    command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    marks = tmp_path / "marks"
    marks.mkdir()
    plan = {"MOOT_FAILPOINTS": "agent.received:30,judge.received:20", "MOOT_FAILPOINT_DIR": str(marks)}
    starts = [
        subprocess.run(command, env=os.environ | plan, capture_output=True, timeout=120, check=False) for _ in range(3)
    ]
    assert [start.returncode for start in starts] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    run(engine="inline", protocol="socrasynth", limit=3, set=settings, out=tmp_path / "whole")
    for table in ("turns", "verdicts"):
        assert stable_rows(tmp_path / "killed", table) == stable_rows(tmp_path / "whole", table), table
