"""Stages whose processes are killed: what is on record is not paid again, rows keep their ids, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import ray
import ray.data
from openai_server import simulated_server, stats_of
from waiting import processes_titled, wait_until

import moot
from moot.actors.record.tables import read_table
from moot.actors.simulated.answer_key import AnswerKey

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.filterwarnings("ignore:::ray.data.context")]

QUESTIONS, LATENCY_MS, OPEN = 30, 400.0, 10
ROWS = [{"question": f"is number {i % QUESTIONS} blue"} for i in range(3 * QUESTIONS)]
LOST = OPEN + round(OPEN * 1000 / LATENCY_MS)
"""Calls under way, and those of the second in which the journal was not flushed."""
PROBES = 1
"""Each session asks a served model once what it can do."""
OPTIONS: dict[str, Any] = {
    "protocol": "single-agent",
    "labels": ("Yes", "No"),
    "seed": 5,
    "max_open": OPEN,
    "placement": "packed",
    "cluster": {"moderators": 1},
}
SCRIPT = """
import json, logging, sys
import ray, ray.data
import moot
address, options, rows = json.loads(sys.stdin.read())
ray.init(address=address, logging_level="error", log_to_driver=False)
ray.data.DataContext.get_current().enable_progress_bars = False
logging.getLogger("ray.data").setLevel(logging.ERROR)
moot.debate_dataset(ray.data.from_items(rows), batch_size=10, **options).take_all()
"""


@pytest.fixture
def server(local_ray: None) -> Iterator[int]:
    ray.data.DataContext.get_current().enable_progress_bars = False
    with simulated_server(AnswerKey(), port=0, latency_ms=LATENCY_MS) as port:
        yield port


def paid(port: int) -> int:
    return sum(stats["calls"] for stats in stats_of(port)["by_step"].values())


def script(port: int, run: Path) -> subprocess.Popen[str]:
    """A driver of its own, on this session's Ray."""
    options = {**OPTIONS, "model": f"http://127.0.0.1:{port}/v1#sim", "out": str(run)}
    address = ray.get_runtime_context().gcs_address
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps([address, options, ROWS]))
    process.stdin.close()
    return process


def check(rows: list[list[Any]], folder: Path) -> None:
    """Every row has an id of its own and a verdict; three copies of each question."""
    ids = [row[0] for row in rows]
    stems = {each.partition("~")[0] for each in ids}
    assert sorted(ids) == sorted(f"{stem}{copy}" for stem in stems for copy in ("", "~1", "~2"))
    assert len(stems) == QUESTIONS
    assert {row[3] for row in rows} == {None}
    verdicts = read_table(folder, "verdicts", ["answer"]).to_pylist()
    assert {row["case_id"]: row["answer"] for row in verdicts} == {row[0]: row[1] for row in rows}
    assert len(verdicts) == len(ROWS)


def reported(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [[row["case_id"], row["answer"], row["reused"], row["error"]] for row in rows]


def test_a_driver_that_was_killed_pays_nothing_twice(server: int, tmp_path: Path) -> None:
    first = script(server, tmp_path / "run")
    try:
        wait_until(lambda: paid(server) >= 2 * QUESTIONS)
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    model = f"http://127.0.0.1:{server}/v1#sim"
    with moot.DebateStage(**OPTIONS, model=model, out=tmp_path / "run") as stage:
        rows = reported(moot.debate_dataset(ray.data.from_items(ROWS), stage, batch_size=10).take_all())
        before = paid(server)
        again = reported(stage(pa.Table.from_pylist(ROWS[::-1])).to_pylist())
    check(rows, tmp_path / "run")
    assert sum(row[2] for row in rows) >= 2 * QUESTIONS - LOST - PROBES
    assert paid(server) == before <= len(ROWS) + LOST + 2 * PROBES
    assert sorted(row[:2] for row in again) == sorted(row[:2] for row in rows)
    assert {row[2] for row in again} == {True}
    assert "status: finished" in (tmp_path / "run" / "run.yaml").read_text()
    wait_until(lambda: not processes_titled("ray::StageActor", "ray::ModeratorActor", "ray::MetricsActor"))


@pytest.mark.parametrize("victim", ["MapBatches", "StageActor"])
def test_a_batch_whose_worker_was_killed_is_called_again_under_the_same_ids(
    victim: str, server: int, tmp_path: Path
) -> None:
    """A worker of Ray Data, or the stage's own actor while it has a batch of this process."""
    model = f"http://127.0.0.1:{server}/v1#sim"
    found: list[dict[str, Any]] = []

    def debate() -> None:
        if victim == "StageActor":
            found.extend(stage(pa.Table.from_pylist(ROWS)).to_pylist())
            return
        ds = ray.data.from_items(ROWS, override_num_blocks=2).map_batches(stage, batch_size=10, num_cpus=0)
        found.extend(ds.take_all())

    with moot.DebateStage(**OPTIONS, model=model, out=tmp_path / "run") as stage:
        pipeline = threading.Thread(target=debate)
        pipeline.start()
        wait_until(lambda: paid(server) >= 2 * QUESTIONS)
        victims = processes_titled(f"ray::{victim}")
        assert victims
        for process in victims:
            os.kill(process.pid, signal.SIGKILL)
        pipeline.join(200)
        assert not pipeline.is_alive()
    rows = reported(found)
    if victim == "MapBatches":
        check(rows, tmp_path / "run")
        assert paid(server) <= len(ROWS) + PROBES
    # It is the stage's actor that numbers copies: where it died itself, some may share a debate.
    assert len(rows) == len(ROWS)
    assert {row[3] for row in rows} == {None}
    answers = {
        row["case_id"]: row["answer"] for row in read_table(tmp_path / "run", "verdicts", ["answer"]).to_pylist()
    }
    assert all(answers[row[0]] == row[1] for row in rows)
    assert paid(server) <= len(ROWS) + LOST + 2 * PROBES
    wait_until(lambda: not processes_titled("ray::StageActor", "ray::ModeratorActor", "ray::MetricsActor"))
