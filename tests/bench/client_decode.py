"""Client CPU per call: from a request to the arrays that the record stores, over each way to speak to OpenAI's wire.

    python tests/bench/client_decode.py [--json FILE] [--ways lean,sdk,typed] [--quick]

A call is one reply of 200 tokens with 5 or 20 alternatives each. `lean` is `CompatibleModel`, `sdk` is `OpenAIModel`,
both with the record's token columns made of each reply; `typed` is the vendor's SDK as it comes, which makes objects
and no arrays, and is measured on fewer calls. CPU is this process's, user and system, all threads; the mock server has
a process of its own and answers after 50 to 100 ms, so that the calls really are open together. The repeats of the ways
alternate, after a warm-up each, on uvloop, which Ray's actors use.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import uvloop
from bench_runs import MockServer
from debate7 import TEMPLATES
from harness import ReportRows, finish, median, options, parsed
from openai import AsyncOpenAI, DefaultAioHttpClient

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


async def run_calls(call: Call, calls: int, concurrency: int) -> None:
    """Make `calls` calls, `concurrency` of them open at once."""
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            await call(number)

    await asyncio.gather(*(worker() for _ in range(concurrency)))


async def measured(
    server: MockServer, names: list[str], concurrency: int, alternatives: int, repeats: int
) -> list[dict[str, Any]]:
    """A row for each way, their repeats alternating; few repeats are few calls, too."""
    url = server.url.removesuffix("/chat/completions")
    ways = {name: Way(name, url, alternatives) for name in names}
    most = max(2000, 2 * concurrency) if repeats > 1 else 2 * concurrency
    calls = {name: concurrency if name == "typed" else most for name in names}
    cpu_ms: dict[str, list[float]] = {name: [] for name in names}
    for way in ways.values():
        await run_calls(way.call, concurrency, concurrency)
    for _ in range(repeats):
        for name, way in ways.items():
            server.set(LATENCY_MS, JITTER_MS)
            gc.collect()
            cpu = time.process_time()
            await run_calls(way.call, calls[name], concurrency)
            cpu_ms[name].append((time.process_time() - cpu) / calls[name] * 1000)
            assert server.stats()["requests"] == calls[name]
    for way in ways.values():
        await way.close()
    return [_row(name, concurrency, alternatives, calls[name], cpu_ms[name]) for name in names]


def _row(way: str, concurrency: int, alternatives: int, calls: int, cpu_ms: list[float]) -> dict[str, Any]:
    value, bound = median(cpu_ms), BARS.get((way, concurrency, alternatives))
    return {
        "open": concurrency,
        "alternatives": alternatives,
        "way": way,
        "calls": calls,
        "cpu_ms": value,
        "least_ms": min(cpu_ms),
        "most_ms": max(cpu_ms),
        "bar_ms": bound,
        "ok": None if bound is None else value <= bound,
    }


def main() -> int:
    """Run the bench; 1 when a bar is missed."""
    parser = options(__doc__)
    parser.add_argument("--ways", default=",".join(WAYS), help="which to measure")
    parser.add_argument("--quick", action="store_true", help="one repeat of few calls: a smoke run")
    given = parsed(parser)
    names = given.ways.split(",")
    if not {*names} <= {*WAYS}:
        parser.error(f"--ways: known are {', '.join(WAYS)}")
    os.environ[KEY_ENV] = "none"
    rows = ReportRows()
    with MockServer(TOKENS) as server:
        for concurrency in (64, 1000):
            for alternatives in (5, 20):
                for row in uvloop.run(measured(server, names, concurrency, alternatives, 1 if given.quick else 5)):
                    rows.add(row)
    return finish(given, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
