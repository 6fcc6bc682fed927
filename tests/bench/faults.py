"""The faults bench: a thousand debates against a server that misbehaves, and against one that limits the rate.

    python tests/bench/faults.py [--json FILE] [--debates 1000] [--placement packed] [--parts faults,rate]

`faults`: 200 open, 1 s latency, 5 s deadline per ask attempt's reply (see below), 10 % 429, 5 % 500, 2 % cut bodies and
1 % hanging connections, and the same without faults. All debates must finish; the wall time is related to the
fault-free run's; the tokens of completed replies must equal the server's count exactly, but for those that it completed
when their ask had just met its deadline (`late`), and its total lie within the record's bounds. `rate`: a rate limit at
60 % of what the run would use; how much of it was used from 10 s after the first call until 90 % of the calls are
served, and over the whole run, whose last debates are too few to use it all.

A hanging connection ends at the ask's deadline only, and an ask that has met its deadline has failed. So the bench's
debate asks again, under a path of its own, up to three times: as a user's protocol would.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.request import urlopen

from bench_runs import bench_spec, ray_session
from debate7 import task
from harness import ReportRows, finish, options, parsed

from moot.actors.agent.roles import RoleBinding
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.dispatch.dispatcher import Dispatcher
from moot.actors.limits.settings import EndpointLimits
from moot.actors.remote.runtime import RayRuntime
from moot.deploy.results.record import read_replies
from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case, case_slots
from moot.protocols.errors import AskFailed
from moot.protocols.floor import Floor
from moot.protocols.messages import Turn, Verdict
from moot.protocols.replies import Position
from moot.protocols.selene.opening import TEMPLATE as OPENING

CALLS, OPEN = 6, 200
LATENCY_MS, DEADLINE_S = 1000.0, 5.0
FAULTS = {"busy-rate": 0.10, "fail-rate": 0.05, "cut-rate": 0.02, "hang-rate": 0.01}
BAR_WALL_X, BAR_RATE_USED = 1.5, 0.95
TRIES = 3


class Stubborn(DebateProtocol):
    """Six calls, each after the one before; an ask that met its deadline is made again."""

    name = "stubborn"
    roles: tuple[str, ...] = ("agent",)

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """See `moot.protocols.base.DebateProtocol`."""
        answer: str | None = None
        for number in range(CALLS):
            answer = (await self._ask(floor, case, number)).answer
        return Verdict(answer=answer, how="t_max", rounds=CALLS)

    async def _ask(self, floor: Floor, case: Case, number: int) -> Turn[Position]:
        for again in range(TRIES):
            path = f"turn/{number}/again/{again}" if again else f"turn/{number}"
            try:
                return await floor.ask(
                    "agent/0", OPENING, case_slots(case), reply=Position, path=path, sample=number * TRIES + again
                )
            except AskFailed as error:
                if error.kind != "timeout" or again == TRIES - 1:
                    raise
        raise AssertionError("unreachable")


@contextmanager
def simulated(**options: float) -> Iterator[str]:
    """`moot simulate` in a process of its own; gives its address."""
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", "moot", "simulate", "--port", "0", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield line.split(" at ")[1].split("/v1")[0]
    finally:
        process.terminate()
        process.wait(10)


def stats(address: str) -> dict[str, Any]:
    """What the server has served."""
    with urlopen(f"{address}/stats", timeout=30) as response:
        found: dict[str, Any] = json.load(response)
    return found


@contextmanager
def sampled(address: str) -> Iterator[list[tuple[float, int]]]:
    """(time, calls served) twice a second, in a thread."""
    samples: list[tuple[float, int]] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            samples.append((time.monotonic(), int(stats(address)["calls"])))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join(30)


async def run_debates(address: str, debates: int, placement: Literal["actors", "packed"]) -> dict[str, Any]:
    """Hold the debates; gives wall time, verdicts and token counts."""
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as path:
        model = f"{address}/v1#simulated"
        roles = {"agent": [RoleBinding(model=model, timeout_s=DEADLINE_S)]}
        limits = {model: EndpointLimits()}
        folder, ownership, spec = bench_spec(Path(path), roles, protocol="stubborn", max_open=OPEN, limits=limits)
        runtime = RayRuntime(spec, Stubborn(), placement=placement)
        await runtime.start()
        began = time.perf_counter()
        await Dispatcher(runtime, task(debates, "bench").cases(), CompletedCases({}, {})).run()
        wall_s = time.perf_counter() - began
        counts = await runtime.writers.counts()
        await runtime.stop()
        ownership.release()
        replies = read_replies(folder.path)
        return {
            "wall_s": wall_s,
            "finished": counts.finished,
            "failed": counts.failed,
            "failed_steps": [f"{r.case_id}/{r.attempt}/{r.path}" for r in replies if r.outcome == "failed"],
            "tokens_known": sum((r.prompt or 0) + (r.completion or 0) for r in replies),
            "unconfirmed_attempts": sum(r.unconfirmed for r in replies),
            "unconfirmed_tokens_max": sum(r.unconfirmed_tokens for r in replies),
        }


def _tokens(served: dict[str, int]) -> int:
    return served["prompt_tokens"] + served["completion_tokens"]


def faults(debates: int, placement: Literal["actors", "packed"]) -> dict[str, Any]:
    """Part one."""
    with simulated(latency_ms=LATENCY_MS) as address:
        calm = asyncio.run(run_debates(address, debates, placement))
    with simulated(latency_ms=LATENCY_MS, **FAULTS) as address:
        stormy = asyncio.run(run_debates(address, debates, placement))
        served = stats(address)
    by_step = served["by_step"]
    late = sum(_tokens(by_step[step]) for step in stormy["failed_steps"] if step in by_step)
    total, cut = _tokens(served), _tokens(served["cut"])
    known, most = stormy["tokens_known"], stormy["tokens_known"] + stormy["unconfirmed_tokens_max"]
    return {
        "debates": debates,
        "finished": stormy["finished"],
        "wall_s": stormy["wall_s"],
        "calm_wall_s": calm["wall_s"],
        "wall_x": stormy["wall_s"] / calm["wall_s"],
        "wall_bar_x": BAR_WALL_X,
        "tokens_known": known,
        "served_completed": total - cut,
        "served_total": total,
        "bounds": f"{known}..{most}",
        "late": total - cut - known,
        "exact": 0 <= total - cut - known <= late,
        "inside": known <= total <= most,
        "429": served["limited"],
        "500": served["failed"],
        "cut": served["cut"]["calls"],
        "hung": served["hung"],
    }


def rate(debates: int, placement: Literal["actors", "packed"]) -> dict[str, Any]:
    """Part two: the demand is 200 calls a second (200 open, 1 s each), the limit 60 % of it."""
    limit_per_min = 0.6 * OPEN / (LATENCY_MS / 1000.0) * 60.0
    with simulated(latency_ms=LATENCY_MS, rate_limit=limit_per_min) as address, sampled(address) as samples:
        held = asyncio.run(run_debates(address, debates, placement))
        served = stats(address)
    per_s = limit_per_min / 60.0
    began = next(at for at, calls in samples if calls)
    steady = [(at, calls) for at, calls in samples if at > began + 10.0 and calls < 0.9 * served["calls"]]
    used = (steady[-1][1] - steady[0][1]) / (steady[-1][0] - steady[0][0]) / per_s
    return {
        "debates": debates,
        "finished": held["finished"],
        "wall_s": held["wall_s"],
        "limit_per_min": limit_per_min,
        "used": used,
        "used_whole_run": served["calls"] / held["wall_s"] / per_s,
        "used_bar": BAR_RATE_USED,
        "429": served["limited"],
        "calls": served["calls"],
    }


def main() -> int:
    """Run the parts."""
    parser = options(__doc__)
    parser.add_argument("--debates", type=int, default=1000)
    parser.add_argument("--placement", choices=["actors", "packed"], default="packed")
    parser.add_argument("--parts", default="faults,rate")
    given = parsed(parser)
    tables = {name: ReportRows() for name in given.parts.split(",")}
    with ray_session():
        for name, rows in tables.items():
            rows.add({"faults": faults, "rate": rate}[name](given.debates, given.placement))
    return finish(given, **tables)


if __name__ == "__main__":
    sys.exit(main())
