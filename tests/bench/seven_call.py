"""The seven-call bench: moot against the plain loop and the naive Ray design, in one run.

    python tests/bench/seven_call.py [--json FILE] [--rows 0ms,100ms+u60] [--logprobs both|off|on] [--quick]

Within a row the repeats of all designs alternate, after one warm-up wave each, so that a noisy neighbour meets all of
them. CPU is the sum over our processes (driver, raylet, GCS and the design's actors; not the mock server), around the
timed window. The window ends when the last verdict is durable. Start-up is measured apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from bench_runs import Child, MockServer, MootRun, ProcessTree, mean_batch, ray_session, spent
from debate7 import CALLS
from harness import bar, finish, median, options, parsed
from naive_ray import NaiveRay

DESIGNS = ("plain", "naive-ray", "actors", "packed")
BATCHES = ("asks", "replies", "rows")


@dataclass(frozen=True)
class BenchRow:
    """One setting of the bench.

    Attributes:
        latency_ms, jitter_ms: the server's latency and the width of the uniform jitter on top.
        open_: debates open at once.
        debates: per repeat; at least four waves.
        bars: by placement: most CPU and least rate, as ratios to the plain loop; None where there is no bar.
    """

    name: str
    latency_ms: float
    jitter_ms: float
    open_: int
    debates: int
    bars: dict[str, tuple[float | None, float]]

    @property
    def ideal_s(self) -> float:
        """Wall seconds of one repeat if nothing but the latency took time."""
        return CALLS * (self.latency_ms + self.jitter_ms / 2) / 1000 * self.debates / self.open_


ROWS = {
    row.name: row
    for row in (
        BenchRow("0ms", 0, 0, 200, 4800, {"actors": (5.0, 0.35), "packed": (3.0, 0.5)}),
        BenchRow("100ms", 100, 0, 200, 3200, {"actors": (None, 0.80), "packed": (None, 0.93)}),
        BenchRow("100ms+u60", 100, 60, 200, 3200, {"actors": (6.5, 0.82), "packed": (3.0, 0.92)}),
        BenchRow("1000x1s", 1000, 0, 1000, 4000, {"actors": (None, 0.93), "packed": (None, 0.96)}),
    )
}


@dataclass
class DesignMeasurement:
    """The repeats of one design in one row."""

    design: str
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    debates: int = 0
    calls: list[int] = field(default_factory=list)
    max_inflight: list[int] = field(default_factory=list)
    cpu_by_process: list[dict[str, float]] = field(default_factory=list)
    batches: dict[str, float] = field(default_factory=dict)
    verified: str = "no"
    close_s: float = math.nan
    close_cpu_s: float = math.nan  # per debate
    journal_bytes_per_debate: float = math.nan

    @property
    def rate(self) -> float:
        """Debates per second, median."""
        return median([self.debates / wall for wall in self.wall_s])

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds per debate, median."""
        return median([cpu / self.debates * 1000 for cpu in self.cpu_s])


@dataclass
class Bench:
    """What the designs of a row share."""

    server: MockServer
    row: BenchRow
    logprobs: bool
    processes: ProcessTree
    plain: Child
    idle: set[int] = field(default_factory=set)

    @contextmanager
    def window(self, measured: DesignMeasurement, pids: frozenset[int]) -> Iterator[None]:
        """Time a block; actors of other designs, which idle, are left out of its CPU."""
        row = self.row
        self.server.set(row.latency_ms, row.jitter_ms)
        others = frozenset(self.idle - pids)
        titles = self.processes.actors()
        before, started = self.processes.cpu(without=others), time.perf_counter()
        yield
        wall, after = time.perf_counter() - started, self.processes.cpu(without=others)
        measured.wall_s.append(wall)
        measured.cpu_s.append(spent(before, after))
        by_process: dict[str, float] = {}
        for pid, cpu in after.items():
            title = titles.get(pid, "driver and ray")
            by_process[title] = by_process.get(title, 0.0) + cpu - before.get(pid, 0.0)
        measured.cpu_by_process.append({k: round(v / measured.debates * 1000, 3) for k, v in by_process.items()})
        self.note_calls(measured)

    def note_calls(self, measured: DesignMeasurement, extra: int = 0) -> None:
        """Take the server's counters since the last setting."""
        stats = self.server.stats()
        measured.calls.append(int(stats["requests"]) - extra)
        measured.max_inflight.append(int(stats["max_inflight"]))

    def settle(self, measured: DesignMeasurement, record: str) -> None:
        """Say whether every repeat made exactly the calls that it should have."""
        right = all(calls == CALLS * measured.debates for calls in measured.calls)
        measured.verified = record if right else f"NO: {measured.calls} calls"

    def new_actors(self) -> frozenset[int]:
        """The actors that have come up since the last time."""
        found = frozenset(self.processes.actors()) - self.idle
        self.idle |= found
        return found


class Design:
    """One way to hold the debates; the actors `pids` are its own."""

    pids: frozenset[int] = frozenset()

    def __init__(self, bench: Bench, name: str, debates: int | None = None) -> None:
        self.bench, self.measured = bench, DesignMeasurement(name, debates=debates or bench.row.debates)

    async def start(self) -> None:
        """Bring it up and hold a warm-up wave."""

    async def hold(self) -> None:
        """The debates of one timed window."""
        raise NotImplementedError

    async def repeat(self) -> None:
        """One timed window."""
        with self.bench.window(self.measured, self.pids):
            await self.hold()

    async def stop(self) -> None:
        """Take it down and check what it did."""
        self.bench.settle(self.measured, "calls")


class PlainLoop(Design):
    """The plain loop in its own process, which counts its own CPU."""

    async def repeat(self) -> None:
        """See `Design.repeat`."""
        bench, row = self.bench, self.bench.row
        bench.server.set(row.latency_ms, row.jitter_ms)
        request = {"url": bench.server.url, "logprobs": bench.logprobs, "debates": row.debates, "open": row.open_}
        result = bench.plain.ask(request)
        self.measured.wall_s.append(result["wall_s"])
        self.measured.cpu_s.append(result["cpu_s"])
        bench.note_calls(self.measured, extra=CALLS * row.open_)


class NaiveRayDesign(Design):
    """An actor call per message; fewer debates, but at least four waves."""

    def __init__(self, bench: Bench, name: str) -> None:
        super().__init__(bench, name, min(bench.row.debates, 4 * bench.row.open_))

    async def start(self) -> None:
        """See `Design.start`."""
        self.bench.server.set()
        self._actors = NaiveRay(self.bench.server.url, self.bench.logprobs)
        await self._actors.hold(self.bench.row.open_, self.bench.row.open_)
        self.pids = self.bench.new_actors()

    async def hold(self) -> None:
        """See `Design.hold`."""
        await self._actors.hold(self.measured.debates, self.bench.row.open_)

    async def stop(self) -> None:
        """See `Design.stop`."""
        self._actors.stop()
        await super().stop()


class MootDesign(Design):
    """Moot in one of its placements, with record, metrics and templates on."""

    async def start(self) -> None:
        """See `Design.start`."""
        bench, placement = self.bench, cast(Literal["actors", "packed"], self.measured.design)
        self._run = MootRun(bench.server.model, placement, bench.logprobs, bench.row.open_)
        bench.server.set()
        await self._run.start()
        await self._run.hold(bench.row.open_)
        self.pids = bench.new_actors()
        self._sizes = await self._run.batch_sizes()

    async def hold(self) -> None:
        """See `Design.hold`."""
        await self._run.hold(self.measured.debates)

    async def stop(self) -> None:
        """See `Design.stop`."""
        measured, run = self.measured, self._run
        measured.batches = mean_batch(self._sizes, await run.batch_sizes())
        measured.close_s, close_cpu_s = await self.bench.processes.watched(run.stop())
        measured.close_cpu_s = close_cpu_s / run.debates
        measured.journal_bytes_per_debate = run.journal_bytes() / run.debates
        try:
            run.check()
            record = "calls, record"
        except AssertionError as error:
            record = f"NO: {error}"
        self.bench.settle(measured, record)
        run.remove()


def design(bench: Bench, name: str) -> Design:
    """A design by name."""
    named: dict[str, type[Design]] = {"plain": PlainLoop, "naive-ray": NaiveRayDesign}
    return named.get(name, MootDesign)(bench, name)


async def run_row(bench: Bench, names: list[str], repeats: int) -> list[DesignMeasurement]:
    """All designs of a row, their repeats alternating."""
    designs = [design(bench, name) for name in names]
    try:
        for one in designs:
            await one.start()
        for _ in range(repeats):
            for one in designs:
                await one.repeat()
    finally:
        for one in designs:
            await one.stop()
    return [one.measured for one in designs]


def report(row: BenchRow, logprobs: bool, results: list[DesignMeasurement]) -> list[dict[str, Any]]:
    """Print a row's table; give it as data."""
    title = f"{row.name}, {row.open_} open, {'5 alternatives per token, recorded' if logprobs else 'no logprobs'}"
    print(f"\n### {title}\n")
    names = ("design", "debates/s (range)", "rate x plain", "CPU ms/debate (range)", "CPU x plain", "efficiency")
    columns = [*names, *(f"batch: {kind}" for kind in BATCHES), "close CPU ms/debate", "verified"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    plain = next((m for m in results if m.design == "plain"), None)
    rows = []
    for measured in results:
        rows.append(_as_data(row, logprobs, measured, plain))
        print("| " + " | ".join(_cells(row, measured, rows[-1])) + " |")
    return rows


def _as_data(
    row: BenchRow, logprobs: bool, measured: DesignMeasurement, plain: DesignMeasurement | None
) -> dict[str, Any]:
    ideal = row.ideal_s * measured.debates / row.debates
    cpu_bound, rate_bound = row.bars.get(measured.design, (None, None))
    return {
        "row": row.name,
        "logprobs": logprobs,
        "open": row.open_,
        **vars(measured),
        "rate": measured.rate,
        "cpu_ms": measured.cpu_ms,
        "rate_ratio": measured.rate / plain.rate if plain else math.nan,
        "cpu_ratio": measured.cpu_ms / plain.cpu_ms if plain else math.nan,
        "efficiency": ideal / median(measured.wall_s) if ideal else None,
        "cpu_bar": cpu_bound,
        "rate_bar": rate_bound,
    }


def _cells(row: BenchRow, measured: DesignMeasurement, data: dict[str, Any]) -> list[str]:
    rates = [measured.debates / wall for wall in measured.wall_s]
    cpus = [cpu / measured.debates * 1000 for cpu in measured.cpu_s]
    rate, cpu = f"{data['rate_ratio']:.2f}", f"{data['cpu_ratio']:.2f}"
    if data["rate_bar"] is not None:
        rate = bar(data["rate_ratio"], data["rate_bar"], ">=")
    if data["cpu_bar"] is not None:
        cpu = bar(data["cpu_ratio"], data["cpu_bar"], "<=")
    moot = measured.design in ("actors", "packed")
    return [
        measured.design,
        f"{measured.rate:.0f} ({min(rates):.0f}-{max(rates):.0f})",
        rate,
        f"{measured.cpu_ms:.2f} ({min(cpus):.2f}-{max(cpus):.2f})",
        cpu,
        f"{data['efficiency']:.3f}" if data["efficiency"] else "-",
        *(f"{measured.batches[kind]:.1f}" if kind in measured.batches else "n/a" if moot else "-" for kind in BATCHES),
        f"{measured.close_cpu_s * 1000:.2f}" if moot else "-",
        measured.verified,
    ]


def time_to_first_turn(server: MockServer) -> list[dict[str, Any]]:
    """Fresh processes with a Ray of their own, from command to first reply, both placements."""
    print("\n### from command to first turn (0 ms latency), seconds\n")
    found = []
    for placement in ("actors", "packed"):
        server.set()
        started = time.time()
        with Child("startup.py", server.model, placement) as child:
            parts = json.loads(child.line())
            parts["first reply"] = server.stats()["first_at"] - parts.pop("at")
            parts["total"] = server.stats()["first_at"] - started
            parts["python and imports"] -= started
            child.process.wait()
        print(f"- {placement}: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items()))
        found.append({"placement": placement, **parts})
    return found


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = options(__doc__)
    parser.add_argument("--rows", default=",".join(ROWS), help=f"some of {','.join(ROWS)}")
    parser.add_argument("--designs", default=",".join(DESIGNS), help=f"some of {','.join(DESIGNS)}")
    parser.add_argument("--logprobs", choices=("off", "on", "both"), default="both")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one repeat of the fewest debates: a smoke run")
    parser.add_argument("--no-startup", action="store_true", help="leave the time to the first turn out")
    given = parsed(parser)
    for option, known in (("rows", ROWS), ("designs", DESIGNS)):
        names = getattr(given, option).split(",")
        if unknown := set(names) - set(known):
            parser.error(f"--{option}: unknown {', '.join(sorted(unknown))}; known are {', '.join(known)}")
        setattr(given, option, names)
    return given


def quick(row: BenchRow) -> BenchRow:
    """The row with as few debates as still are four waves."""
    return BenchRow(row.name, row.latency_ms, row.jitter_ms, row.open_, 4 * row.open_, row.bars)


def main() -> int:
    """Run the bench; 1 when a call or a verdict is missing."""
    given = arguments()
    rows: list[dict[str, Any]] = []
    with MockServer() as server, Child("plain_loop.py") as loop:
        startup = [] if given.no_startup else time_to_first_turn(server)
        with ray_session():
            for logprobs in {"off": (False,), "on": (True,), "both": (False, True)}[given.logprobs]:
                for name in given.rows:
                    row = quick(ROWS[name]) if given.quick else ROWS[name]
                    bench = Bench(server, row, logprobs, ProcessTree(server.pid, loop.pid), loop)
                    results = asyncio.run(run_row(bench, given.designs, 1 if given.quick else given.repeats))
                    rows += report(row, logprobs, results)
                    sys.stdout.flush()
    finish(given, startup=startup, rows=rows)
    return int(any(row["verified"].startswith("NO") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
