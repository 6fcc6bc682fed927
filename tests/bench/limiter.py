"""The limiter bench: permits granted to eight processes, what asking costs the callers, and how full a rate is used.

    python tests/bench/limiter.py [--json FILE] [--seconds 10] [--rate-seconds 184]

Part one: eight actors ask for 1,500 permits a second each, in bursts every 10 ms, from one limiter actor with a rate
limit that does not bind. A caller's CPU per call is its process's, less that of the same loop without a gate. Part two:
the same actors want as much as they can get of 600 requests a minute: how much of it they use, counted over whole turns
of a window and its permits' time to live, and the fullest window of 60 s by the callers' clocks.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import msgspec
import ray
from bench_runs import ray_session
from harness import ReportRows, finish, options, parsed

from moot.actors.limits.call_queue import CallDemand
from moot.actors.limits.envelopes import Grant, UsageReport
from moot.actors.limits.limiter import Limiter
from moot.actors.limits.limiter_client import LimiterClient
from moot.actors.limits.settings import PERMIT_TTL_S, WINDOW_S, EndpointLimits

CALLERS = 8
PERMITS_PER_S, OFFERED_PER_S = 10_000, 12_000
BURST_S = 0.01
BAR_CPU_MS, BAR_USED = 0.05, 0.97
RATE = 600


class LimiterProcess:
    """The limiter in a process of its own."""

    def __init__(self, requests_per_min: int) -> None:
        limits = {"m": EndpointLimits(requests_per_min=requests_per_min, concurrency=4000)}
        self._limiter = Limiter(limits, {}, clock=time.monotonic)
        self.exchanges = 0

    async def exchange(self, raw: bytes) -> bytes:
        """As the actor of a run does."""
        self.exchanges += 1
        return msgspec.msgpack.encode(self._limiter.exchange(msgspec.msgpack.decode(raw, type=UsageReport)))

    async def used(self) -> tuple[int, float]:
        """Exchanges so far, and CPU seconds."""
        return self.exchanges, time.process_time()


class LimiterCaller:
    """A process whose calls need permits."""

    def __init__(self, limiter: Any, requests_per_min: int) -> None:
        async def exchange(report: UsageReport) -> Grant:
            raw = await limiter.exchange.remote(msgspec.msgpack.encode(report))
            return msgspec.msgpack.decode(raw, type=Grant)

        limits = {"m": EndpointLimits(requests_per_min=requests_per_min, concurrency=4000)}
        self._gate = LimiterClient(limits, (), exchange)
        self._starts: list[float] = []

    async def _call(self, gated: bool) -> None:
        if gated:
            admission = await self._gate.admit("m", CallDemand())
            self._starts.append(time.time())
            admission.end("answered")
        else:
            self._starts.append(time.time())

    async def ask(self, per_s: float, seconds: float, gated: bool) -> tuple[list[float], float]:
        """Ask for `per_s` permits a second in bursts; gives when calls started, and the CPU seconds."""
        self._starts = []
        loop = asyncio.get_running_loop()
        cpu, began = time.process_time(), loop.time()
        burst = max(1, round(per_s * BURST_S))
        for number in range(round(seconds / BURST_S)):
            await asyncio.gather(*(self._call(gated) for _ in range(burst)))
            await asyncio.sleep(max(0.0, began + (number + 1) * BURST_S - loop.time()))
        return self._starts, time.process_time() - cpu

    async def want_all(self, seconds: float) -> list[float]:
        """Fifty calls, one after the other each, for so long; gives when calls started."""
        self._starts = []
        workers = [asyncio.create_task(self._again_and_again()) for _ in range(50)]
        await asyncio.sleep(seconds)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return self._starts

    async def _again_and_again(self) -> None:
        while True:
            await self._call(gated=True)
            await asyncio.sleep(0.05)


def fullest(starts: list[float], span_s: float) -> int:
    """Most starts in any window."""
    times = sorted(starts)
    last = most = 0
    for first, start in enumerate(times):
        while last < len(times) and times[last] < start + span_s:
            last += 1
        most = max(most, last - first)
    return most


def throughput(seconds: float) -> dict[str, Any]:
    """Part one."""
    bound = PERMITS_PER_S * 120
    limiter = ray.remote(LimiterProcess).options(num_cpus=0).remote(bound)
    callers = [ray.remote(LimiterCaller).options(num_cpus=0).remote(limiter, bound) for _ in range(CALLERS)]
    per_s = OFFERED_PER_S / CALLERS
    ray.get([caller.ask.remote(per_s, 2.0, True) for caller in callers])
    bare = ray.get([caller.ask.remote(per_s, seconds, False) for caller in callers])
    exchanges, limiter_cpu = ray.get(limiter.used.remote())
    gated = ray.get([caller.ask.remote(per_s, seconds, True) for caller in callers])
    after, limiter_cpu_after = ray.get(limiter.used.remote())
    calls = sum(len(starts) for starts, _ in gated)
    span = max(max(starts) for starts, _ in gated) - min(min(starts) for starts, _ in gated)
    bare_ms = sum(cpu for _, cpu in bare) / sum(len(starts) for starts, _ in bare) * 1000
    gated_ms = sum(cpu for _, cpu in gated) / calls * 1000
    for actor in (*callers, limiter):
        ray.kill(actor)
    return {
        "permits_per_s": calls / span,
        "permits_bar": PERMITS_PER_S,
        "caller_cpu_ms": gated_ms - bare_ms,
        "caller_cpu_bar_ms": BAR_CPU_MS,
        "calls_per_exchange": calls / max(1, after - exchanges),
        "limiter_cpu_ms": (limiter_cpu_after - limiter_cpu) / calls * 1000,
    }


def rate(seconds: float) -> dict[str, Any]:
    """Part two."""
    limiter = ray.remote(LimiterProcess).options(num_cpus=0).remote(RATE)
    callers = [ray.remote(LimiterCaller).options(num_cpus=0).remote(limiter, RATE) for _ in range(CALLERS)]
    starts = [each for found in ray.get([c.want_all.remote(seconds) for c in callers]) for each in found]
    for actor in (*callers, limiter):
        ray.kill(actor)
    began, turn_s = min(starts), WINDOW_S + PERMIT_TTL_S
    counted_s = (max(starts) - began) // turn_s * turn_s
    return {
        "limit_per_min": RATE,
        "counted_s": counted_s,
        "used": sum(start < began + counted_s for start in starts) / (RATE * counted_s / WINDOW_S),
        "used_bar": BAR_USED,
        "fullest_window": fullest(starts, WINDOW_S),
        "ttl_s": PERMIT_TTL_S,
    }


def main() -> int:
    """Run both parts."""
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate-seconds", type=float, default=184.0, help="three whole windows, or none with 0")
    given = parsed(parser)
    granted, used = ReportRows(), ReportRows()
    with ray_session():
        granted.add(throughput(given.seconds))
        if given.rate_seconds:
            used.add(rate(given.rate_seconds))
    return finish(given, throughput=granted, rate=used)


if __name__ == "__main__":
    sys.exit(main())
