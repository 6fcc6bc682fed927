"""What counting and tracing cost where nobody traces: microseconds per number, per call to a model, and per debate.

python tests/bench/metering.py --json metering.json      # about half a minute
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray

from moot.actors.limits.admitted import CallWatch
from moot.actors.meter import CALLS, SILENT, SURPRISAL, Meter
from moot.actors.models.interface import ModelReply
from moot.actors.models.prices import Price
from moot.actors.remote.run_actor import RayMeter
from moot.actors.tracing import NO_SPAN, Tracing
from moot.protocols.messages import Usage

_REPEATS, _TIMES = 15, 2_000
_REPLY = ModelReply("x", "stop", Usage(400, 60))


def _best_us(work: Callable[[], Any]) -> float:
    """Microseconds that one `work` takes, the best of several measurements: others use the machine, too."""
    found = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        for _ in range(_TIMES):
            work()
        found.append((time.perf_counter() - began) / _TIMES * 1e6)
    return min(found)


def _call(meter: Meter) -> Callable[[], None]:
    calls = CallWatch(meter, "m", Price(input=1.0, output=2.0), bills=True)

    def one() -> None:
        with calls.attempt(NO_SPAN) as call:
            call.admitted()
            call.answered(_REPLY)

    return one


def rows() -> list[dict[str, Any]]:
    """What is measured, inside an actor's kind of process: one that has joined Ray."""
    meter, untraced = RayMeter("selene"), Tracing("run", {})
    return [
        {"what": "add to a counter", "us": _best_us(lambda: meter.add(CALLS, 1.0, "m", "answered"))},
        {"what": "observe a value", "us": _best_us(lambda: meter.observe(SURPRISAL, 0.4, "m", "agent"))},
        {"what": "all numbers of a call", "us": _best_us(_call(meter))},
        {"what": "the same, silent", "us": _best_us(_call(SILENT))},
        {"what": "a debate's traceparent", "us": _best_us(lambda: untraced.traceparent("case-1", 0))},
    ]


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        found = rows()
    finally:
        ray.shutdown()
    for row in found:
        print(f"{row['what']:26} {row['us']:6.2f} us")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
