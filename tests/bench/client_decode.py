"""Client CPU per call: from a request to the arrays that the record stores, over each way to speak to OpenAI's wire.

    python tests/bench/client_decode.py [--json FILE] [--ways lean,sdk,typed] [--quick] [--profile WAY]

A call is one reply of 200 tokens with 5 or 20 alternatives each. `lean` is `CompatibleModel`, `sdk` is `OpenAIModel`,
both with the record's token columns made of each reply; `typed` is the vendor's SDK as it comes, which makes objects
and no arrays, and is measured on fewer calls. CPU is this process's, user and system, all threads; the mock server has
a process of its own and answers after 50 to 100 ms, so that the calls really are open together. The repeats of the ways
alternate, after a warm-up each, on uvloop, which Ray's actors use. `--profile` shows where the CPU of one way goes.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from debate7 import TEMPLATES
from openai import AsyncOpenAI, DefaultAioHttpClient
from rig import MockServer, bar, machine, median

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import Model
from moot.actors.models.openai_sdk import OpenAIModel
from moot.actors.record.rows import token_columns
from moot.protocols.messages import Decoding, Message

TOKENS = 200
LATENCY_MS, JITTER_MS = 50.0, 50.0
KEY_ENV = "MOOT_BENCH_KEY"
WAYS = ("lean", "sdk", "typed")
BARS = {
    ("lean", 64, 5): 0.6,
    ("lean", 64, 20): 1.5,
    ("sdk", 64, 5): 2.0,
    ("sdk", 64, 20): 2.8,
    ("lean", 1000, 5): 0.7,
    ("lean", 1000, 20): 1.7,
    ("sdk", 1000, 5): 2.2,
    ("sdk", 1000, 20): 3.4,
}
"""Most CPU milliseconds per call by way, calls open at once and alternatives."""

MESSAGES = (
    Message("system", next(iter(TEMPLATES.values()))[:400]),
    Message("user", "Which one does the passage speak for? " + "The evidence says that the claim holds. " * 40),
)

Call = Callable[[int], Awaitable[None]]


@dataclass
class Measured:
    """One way at one concurrency with so many alternatives."""

    path: str
    concurrency: int
    alternatives: int
    calls: int
    cpu_ms: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)

    @property
    def bound_ms(self) -> float | None:
        """The bar; None for what has none."""
        return BARS.get((self.path, self.concurrency, self.alternatives))


class Way:
    """One way to make calls, and how to end it."""

    def __init__(self, path: str, url: str, alternatives: int) -> None:
        self.path, self._alternatives = path, alternatives
        self._model: Model | None = None
        if path == "lean":
            self._model = CompatibleModel(url, "mock", api_key_env=KEY_ENV)
        elif path == "sdk":
            self._model = OpenAIModel("mock", api_key_env=KEY_ENV, base_url=url)
        else:
            patient = httpx2.Timeout(None)
            unbounded = DefaultAioHttpClient(limits=httpx2.Limits(max_connections=0), timeout=patient)
            self._sdk = AsyncOpenAI(api_key="none", base_url=url, max_retries=0, http_client=unbounded)

    async def call(self, number: int) -> None:
        """Make a call, and check that what came is whole."""
        if self._model is None:
            return await self._typed()
        decoding = Decoding(max_tokens=400, top_logprobs=self._alternatives)
        reply = await self._model.complete(MESSAGES, decoding, step_key=f"bench-{number}/0/round/1/agent/1")
        columns = token_columns(reply.tokens, "all")
        assert len(columns["token"]) == TOKENS
        assert len(columns["alt_logprob"]) == TOKENS * self._alternatives

    async def _typed(self) -> None:
        messages: Any = [{"role": message.role, "content": message.content} for message in MESSAGES]
        reply = await self._sdk.chat.completions.create(
            model="mock", messages=messages, logprobs=True, top_logprobs=self._alternatives, max_completion_tokens=400
        )
        logprobs = reply.choices[0].logprobs
        assert logprobs is not None
        assert len(logprobs.content or ()) == TOKENS

    async def close(self) -> None:
        """Close its connections."""
        await (self._sdk.close() if self._model is None else self._model.close())


async def hold(call: Call, calls: int, concurrency: int) -> None:
    """Make `calls` calls, `concurrency` of them open at once."""
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            await call(number)

    await asyncio.gather(*(worker() for _ in range(concurrency)))


async def measure_row(
    server: MockServer, names: list[str], concurrency: int, alternatives: int, repeats: int
) -> list[Measured]:
    """The ways of one row, their repeats alternating; few repeats are few calls, too."""
    url = server.url.removesuffix("/chat/completions")
    ways = [Way(name, url, alternatives) for name in names]
    calls = max(2000, 2 * concurrency) if repeats > 1 else 2 * concurrency
    found = [Measured(name, concurrency, alternatives, concurrency if name == "typed" else calls) for name in names]
    for way in ways:
        await hold(way.call, concurrency, concurrency)
    for _ in range(repeats):
        for way, measured in zip(ways, found, strict=True):
            server.set(LATENCY_MS, JITTER_MS)
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            await hold(way.call, measured.calls, concurrency)
            measured.cpu_ms.append((time.process_time() - cpu) / measured.calls * 1000)
            measured.wall_s.append(time.perf_counter() - wall)
            assert server.stats()["requests"] == measured.calls
    for way in ways:
        await way.close()
    return found


def show(rows: list[Measured]) -> list[Measured]:
    """Print a row of the table; gives the rows back."""
    first = rows[0]
    cells = []
    for measured in rows:
        value, bound = median(measured.cpu_ms), measured.bound_ms
        spread = f" [{min(measured.cpu_ms):.2f}-{max(measured.cpu_ms):.2f}]"
        cells.append((f"{value:.3f}" if bound is None else bar(value, bound, "<=")) + spread)
    print(f"| {first.concurrency} | {first.alternatives} | " + " | ".join(cells) + " |", flush=True)
    return rows


async def profile_way(server: MockServer, path: str, concurrency: int, alternatives: int, calls: int) -> None:
    """Print where the CPU of one way goes."""
    server.set(LATENCY_MS, JITTER_MS)
    way = Way(path, server.url.removesuffix("/chat/completions"), alternatives)
    await hold(way.call, concurrency, concurrency)
    profile = cProfile.Profile(time.thread_time)
    profile.enable()
    await hold(way.call, calls, concurrency)
    profile.disable()
    await way.close()
    pstats.Stats(profile).sort_stats("tottime").print_stats(35)


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    import uvloop

    return uvloop.run(work)


def main() -> int:
    """Run the bench; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures, with the machine, to this file")
    parser.add_argument("--ways", default=",".join(WAYS), help="which to measure")
    parser.add_argument("--quick", action="store_true", help="one repeat of few calls: a smoke run")
    parser.add_argument("--profile", choices=WAYS, help="profile one way instead")
    given = parser.parse_args()
    names = given.ways.split(",")
    if not {*names} <= {*WAYS}:
        parser.error(f"--ways: known are {', '.join(WAYS)}")
    os.environ[KEY_ENV] = "none"
    facts = machine()
    print(f"{facts['cores']} cores, {facts['cpu']}, Python {facts['python']}, load {facts['load_at_start']:.2f}\n")
    rows: list[Measured] = []
    with MockServer(TOKENS) as server:
        if given.profile:
            _run(profile_way(server, given.profile, 64, 5, 2000))
            return 0
        print(f"client CPU per call, ms: median [range]\n\n| open | alternatives | {' | '.join(names)} |")
        print("|" + "---|" * (2 + len(names)))
        for concurrency in (64, 1000):
            for alternatives in (5, 20):
                repeats = 1 if given.quick else 5
                rows += show(_run(measure_row(server, names, concurrency, alternatives, repeats)))
    if given.json:
        figures = [asdict(row) | {"bound_ms": row.bound_ms} for row in rows]
        given.json.write_text(json.dumps({"machine": facts, "tokens": TOKENS, "rows": figures}, indent=1))
    return int(any(row.bound_ms is not None and median(row.cpu_ms) > row.bound_ms for row in rows))


if __name__ == "__main__":
    sys.exit(main())
