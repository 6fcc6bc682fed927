"""What counting and tracing cost where nobody traces: microseconds per number, per call to a model, and per debate.

python tests/bench/metering.py [--json FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from bench_runs import ray_session
from harness import ReportRows, best, finish, options, parsed

from moot.actors.limits.rate_limited_model import CallTelemetry
from moot.actors.models.interface import ModelReply
from moot.actors.models.prices import Price
from moot.actors.remote.run_actor import RayMeter
from moot.actors.telemetry.meter import CALLS, SILENT, SURPRISAL, Meter
from moot.actors.telemetry.telemetry import NO_SPAN, Tracing
from moot.protocols.messages import Usage

_REPEATS, _TIMES = 15, 2_000
_REPLY = ModelReply("x", "stop", Usage(400, 60))


def _best_us(work: Callable[[], Any]) -> float:
    """Microseconds that one `work` takes, the best of several measurements of many."""

    def many() -> None:
        for _ in range(_TIMES):
            work()

    return best(many, _REPEATS) / _TIMES * 1e6


def _call(meter: Meter) -> Callable[[], None]:
    calls = CallTelemetry(meter, "m", Price(input=1.0, output=2.0), bills=True)

    def one() -> None:
        with calls.attempt(NO_SPAN) as call:
            call.admitted()
            call.answered(_REPLY)

    return one


def measured() -> ReportRows:
    """What is measured, inside an actor's kind of process: one that has joined Ray."""
    meter, untraced = RayMeter("selene"), Tracing("run", {})
    work: dict[str, Callable[[], Any]] = {
        "add to a counter": lambda: meter.add(CALLS, 1.0, "m", "answered"),
        "observe a value": lambda: meter.observe(SURPRISAL, 0.4, "m", "agent", "1"),
        "all numbers of a call": _call(meter),
        "the same, silent": _call(SILENT),
        "a debate's traceparent": lambda: untraced.traceparent("case-1", 0),
    }
    rows = ReportRows()
    for what, each in work.items():
        rows.add({"what": what, "us": _best_us(each)})
    return rows


def main() -> int:
    """See the module."""
    given = parsed(options(__doc__))
    with ray_session():
        return finish(given, rows=measured())


if __name__ == "__main__":
    sys.exit(main())
