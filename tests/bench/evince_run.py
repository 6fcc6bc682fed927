"""EVINCE on the simulated model with 1 s per call: how near a run comes to its critical path.

    python tests/bench/evince_run.py [--json FILE] [--cases 300] [--latency-ms 1000] [--placements actors,packed]

Every case holds its opening exchange and three rounds (`epsilon=0` lets none rest earlier), with the gate on: two sides
and one judge speak one after another, so that the critical path is 16 calls. The wall time runs from the first ask to
the last durable verdict, with all cases open at once; `session` adds the start and the end of the run. The simulated
model itself takes about as much CPU as everything else. Bar: within 10 % of the critical path.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import ray
from rig import bar, machine, start_ray

import moot
from moot.actors.record.tables import read_table
from moot.actors.spec import Placement

BAR = 1.10
ROUNDS = 3
LABELS = (
    "flu",
    "common cold",
    "measles",
    "mumps",
    "scarlet fever",
    "chickenpox",
    "rubella",
    "dengue",
    "malaria",
    "zika",
)
_SIGNS = (
    "fever",
    "rash",
    "cough",
    "headache",
    "sore throat",
    "swollen glands",
    "joint pain",
    "chills",
    "nausea",
    "itch",
)


def cases(count: int) -> list[dict[str, Any]]:
    """Made-up symptom lists."""
    return [
        {"id": f"case-{i}", "question": f"Patient {i} has {', '.join(_three(i))}.", "labels": LABELS}
        for i in range(count)
    ]


def _three(number: int) -> Sequence[str]:
    return [_SIGNS[number % 10], _SIGNS[(number // 10 + 3) % 10], _SIGNS[(number // 7 + 6) % 10]]


def measured(placement: Placement, count: int, latency_ms: float) -> dict[str, Any]:
    """One run; its figures."""
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
        started = time.perf_counter()
        run = moot.run(
            task=cases(count),
            protocol="evince",
            model=f"simulated?latency_ms={latency_ms:g}",
            placement=placement,
            out=f"{scratch}/run",
            max_open=count,
            concurrency=2 * count,
            set={"epsilon": 0.0, "max_rounds": ROUNDS, "follow_ups": "never", "crit.max_depth": 0},
        )
        session_s = time.perf_counter() - started
        turns = read_table(run.path, "turns", ["at", "latency_s", "outcome"]).to_pylist()
        verdicts = read_table(run.path, "verdicts", ["at", "failed", "rounds"]).to_pylist()
    assert not any(row["failed"] for row in verdicts), "a case failed"
    assert {row["rounds"] for row in verdicts} == {ROUNDS}
    steps = 4 * (ROUNDS + 1)
    assert len(turns) == steps * count, f"{len(turns)} replies, expected {steps * count}"
    first = min(row["at"] for row in turns)  # when it was asked
    wall_s = max(row["at"] for row in verdicts) - first
    path_s = steps * latency_ms / 1000.0
    return {
        "placement": placement,
        "cases": count,
        "calls": len(turns),
        "critical_path_s": path_s,
        "wall_s": wall_s,
        "ratio": wall_s / path_s,
        "mean_latency_s": sum(row["latency_s"] for row in turns) / len(turns),
        "session_s": session_s,
    }


def main() -> int:
    """Run the bench; 1 when the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures, with the machine, to this file")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--latency-ms", type=float, default=1000.0)
    parser.add_argument("--placements", default="actors,packed")
    given = parser.parse_args()
    found: dict[str, Any] = {"machine": machine(), "rows": []}
    print("| placement | cases | calls | critical path s | wall s | ratio | mean latency s | session s |")
    print("|---|---|---|---|---|---|---|---|")
    start_ray()
    try:
        for placement in given.placements.split(","):
            row = measured(cast(Placement, placement), given.cases, given.latency_ms)
            found["rows"].append(row)
            print(
                f"| {placement} | {row['cases']} | {row['calls']} | {row['critical_path_s']:.1f} "
                f"| {row['wall_s']:.1f} | {bar(row['ratio'], BAR, '<=')} | {row['mean_latency_s']:.3f} "
                f"| {row['session_s']:.1f} |",
                flush=True,
            )
    finally:
        ray.shutdown()
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return int(any(row["ratio"] > BAR for row in found["rows"]))


if __name__ == "__main__":
    sys.exit(main())
