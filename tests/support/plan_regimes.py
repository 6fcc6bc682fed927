"""A pilot, its plan, and the planned run, against `moot simulate` in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from openai_server import simulated_server

from moot.actors.record.schema import ASKED
from moot.actors.record.tables import read_table
from moot.deploy.runs.run import run
from moot.deploy.studies.planning.pilot import read_pilot
from moot.deploy.studies.planning.plan import RunPlan, plan_of
from moot.deploy.studies.planning.settings import PlanSettings

LATENCY = {"latency_ms": 300.0, "jitter_ms": 200.0}

REGIMES: Mapping[str, dict[str, Any]] = {
    "max_open": {"max_open": 16, "concurrency": 1000},
    "rpm": {"limit_rpm": 2400, "max_open": 400, "concurrency": 1000},
    "concurrency": {"concurrency": 32, "max_open": 400},
    "tpm": {"limit_tpm": 1_350_000, "max_open": 400, "concurrency": 1000},
}
"""Bounds by the bottleneck that they cause."""

PILOT = {"max_open": 40}
"""Settings of the pilot: few concurrent debates, so that it measures the server and not this machine."""

_FLAG_OF = {"limit_rpm": "requests_per_min", "limit_tpm": "tokens_per_min"}


def rows_file(path: Path, first: int, count: int) -> Path:
    """Write BoolQ rows, all different, to a file."""
    rows = [
        {
            "question": f"is island {n} larger than island {n + 1}",
            "answer": n % 2 == 0,
            "passage": f"Island {n} is {n}.",
        }
        for n in range(first, first + count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """Use and duration of a run, from its record.

    Attributes:
        busy_s: mean duration of a call in seconds; above the server's latency if this machine was busy.
    """

    time_s: float
    calls: int
    prompt_tokens: int
    completion_tokens: int
    busy_s: float


def run_and_measure(out: Path, model: str, task: Path, bounds: Mapping[str, int]) -> MeasuredRun:
    """Run the debates of a file and read their use."""
    flags: dict[str, Any] = {_FLAG_OF.get(name, name): bound for name, bound in bounds.items()}
    config = {
        "task": f"boolq:{task}",
        "model": model,
        "engine": "inline",
        "out": str(out),
        "save_tokens": "none",
        **flags,
    }
    run(config)
    return read_measured_run(out)


def read_measured_run(out: Path) -> MeasuredRun:
    """Use of a run from its record, from its first ask to its last verdict."""
    events = read_table(out, "events", ["kind", "at"]).to_pylist()
    verdicts = read_table(out, "verdicts", ["at", "calls", "prompt_tokens", "completion_tokens"]).to_pylist()
    began = min(row["at"] for row in events if row["kind"] == ASKED)
    turns = read_table(out, "turns", ["prompt_tokens", "completion_tokens", "latency_s", "waited_s"]).to_pylist()
    return MeasuredRun(
        time_s=max(row["at"] for row in verdicts) - began,
        calls=len(turns),
        prompt_tokens=sum(row["prompt_tokens"] for row in turns),
        completion_tokens=sum(row["completion_tokens"] for row in turns),
        busy_s=sum(row["latency_s"] - row["waited_s"] for row in turns) / len(turns),
    )


def plan_as_slow(pilot: Path, run_like: Path, **wanted: Any) -> RunPlan:
    """Plan from a pilot whose calls and debates are scaled to the mean duration of those of another run.

    A plan assumes that servers and the machine are as fast as in the pilot; this one uses their actual speed.
    """
    one, other = read_pilot(pilot), read_pilot(run_like)
    slow = other.busy_s.mean() / one.busy_s.mean()
    return plan_of(replace(one, busy_s=slow * one.busy_s, alone_s=slow * one.alone_s), PlanSettings(**wanted))


def scaled(bounds: Mapping[str, int], by: int) -> dict[str, Any]:
    """Every bound multiplied by `by`."""
    return {name: bound * by for name, bound in bounds.items()}


@contextmanager
def server(latency: Mapping[str, float] = LATENCY) -> Iterator[str]:
    """Model at the simulated server."""
    with simulated_server(None, port=0, **latency) as port:
        yield f"http://127.0.0.1:{port}/v1#simulated"
