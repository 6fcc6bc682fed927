"""The Ray Data stage against the same cases held by `moot run`: SELENE, the embedded simulated model at 1 s per reply.

Both sides join the same Ray, in the same process, one after the other: a run, the stage, the stage, a run, so that a
machine that gets busier or quieter meanwhile is fair to both. The time goes from the first reply to the last verdict
for the run, and to the last row in the consumer's hands for the stage; start-up is apart, and so is the run's
compaction. No case says what is right, for the rows of a dataset do not either, and the simulated model goes by it: so
both sides make the same calls. Figures are means of two. `over` is how much longer the stage takes: at most 0.1.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
import ray.data
from bench_runs import lamp, ray_session

import moot
from moot.actors.record.tables import read_table

CASES, OPEN = 5000, 200
LATENCY_MS = 1000.0
BAR = 0.1


def rows(cases: int = CASES) -> list[dict[str, Any]]:
    """One row per side."""
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    given = [lamp(number) for number in range(cases)]
    with ray_session(), tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
        sides = [_run, _stage, _stage, _run]
        held = [side(given, Path(scratch) / str(number)) for number, side in enumerate(sides)]
    print(held, file=sys.stderr, flush=True)
    found = [_mean(held[0], held[3]), _mean(held[1], held[2])]
    assert held[0]["replies"] == held[1]["replies"], "both sides hold the same debates"
    first = found[0]["seconds"]
    for row in found:
        row["over"] = row["seconds"] / first - 1.0
        row["ok"] = row["over"] <= BAR
        print(row, file=sys.stderr, flush=True)
    return found


def _mean(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, str | int) else (value + other[name]) / 2 for name, value in one.items()}


def _options(out: Path) -> dict[str, Any]:
    model = f"simulated?latency_ms={LATENCY_MS:g}"
    return {"model": model, "placement": "packed", "max_open": OPEN, "out": str(out)}


def _run(cases: list[dict[str, Any]], out: Path) -> dict[str, Any]:
    began = time.time()
    run = moot.run(task=cases, **_options(out))
    return _row("moot run", out, began, max(read_table(run.path, "verdicts", ["at"])["at"].to_pylist()))


def _stage(cases: list[dict[str, Any]], out: Path) -> dict[str, Any]:
    ds = ray.data.from_items(cases)
    began = time.time()
    with moot.DebateStage(id_column="id", **_options(out)) as stage:
        answered = sum(row["answer"] is not None for row in moot.debate_dataset(ds, stage).iter_rows())
        ended = time.time()
        assert answered == len(cases)
    return _row("debate_dataset", out, began, ended)


def _row(side: str, out: Path, began: float, ended: float) -> dict[str, Any]:
    first = min(read_table(out, "turns", ["at"])["at"].to_pylist())
    count = read_table(out, "verdicts", ["at"]).num_rows
    replies = read_table(out, "turns", ["at"]).num_rows
    return {
        "side": side,
        "debates": count,
        "replies": replies,
        "open": OPEN,
        "start_up_s": first - began,
        "seconds": ended - first,
        "debates_per_s": count / (ended - first),
    }
