"""Holds `moot plan` against real runs: a pilot, its plans, and the run of a hundredth of the size of the large one.

    python tests/bench/plan_check.py [--pilot 200] [--cases 200] [--json FILE]

Runs are held by the inline engine against `moot simulate` (1 s plus a uniform 0 to 0.6 s), on cases that the pilot did
not have. `small` plans the run that is held; `large` plans a hundred times its cases under bounds a hundred times
as wide, which takes as long. `slower` says how much longer a call took than in the pilot, which no plan can know. Exits
with 1 when a time, the calls or the tokens are more than 15 % off.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import ReportRows, finish, options, parsed

sys.path[:0] = [str(Path(__file__).parents[1] / "support")]

from plan_regimes import rows_file, run_and_measure, scaled, server  # noqa: E402 - a module of the tests

from moot.deploy.studies.planning.plan import plan  # noqa: E402

BAR = 0.15
LATENCY = {"latency_ms": 1000.0, "jitter_ms": 600.0}
REGIMES: dict[str, dict[str, Any]] = {
    "max_open": {"max_open": 32, "concurrency": 1000},
    "rpm": {"limit_rpm": 2700, "max_open": 400, "concurrency": 1000},
    "concurrency": {"concurrency": 64, "max_open": 400},
    "tpm": {"limit_tpm": 900_000, "max_open": 400, "concurrency": 1000},
}
_PILOT = {"max_open": 32}


def main() -> int:
    """Hold all runs; 1 when a plan is too far off."""
    parser = options(__doc__)
    parser.add_argument("--pilot", type=int, default=200)
    parser.add_argument("--cases", type=int, default=200)
    given = parsed(parser)
    rows = ReportRows()
    with tempfile.TemporaryDirectory() as name, server(LATENCY) as model:
        folder = Path(name)
        pilot = folder / "pilot"
        measured = run_and_measure(pilot, model, rows_file(folder / "pilot.jsonl", 20_000, given.pilot), _PILOT)
        for regime, bounds in REGIMES.items():
            small = plan(pilot, cases=given.cases, **bounds)
            large = plan(pilot, cases=100 * given.cases, **scaled(bounds, 100))
            held = run_and_measure(
                folder / regime, model, rows_file(folder / f"{regime}.jsonl", 10_000, given.cases), bounds
            )
            planned = small.totals.prompt_tokens.value + small.totals.completion_tokens.value
            off = {
                "off": held.time_s / small.time_s.value - 1,
                "large_off": held.time_s / large.time_s.value - 1,
                "calls_off": held.calls / small.totals.calls.value - 1,
                "tokens_off": (held.prompt_tokens + held.completion_tokens) / planned - 1,
            }
            row = {
                "regime": regime,
                "binding": small.binding,
                "planned_s": small.time_s.value,
                "large_s": large.time_s.value,
                "held_s": held.time_s,
                **off,
                "inside": small.time_s.low <= held.time_s <= small.time_s.high,
                "slower": held.busy_s / measured.busy_s - 1,
                "ok": all(abs(each) <= BAR for each in off.values()),
            }
            rows.add(row)
    return finish(given, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
