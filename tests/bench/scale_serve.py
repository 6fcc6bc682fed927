"""What the server adds to a debate: from POST to its verdict over HTTP, beyond what the engine took for it.

Closed loop: so many debates are open all the time; when one ends, the next is brought. They begin spread over some
seconds, as no two hundred clients begin at once. Every debate is measured twice at once: by its client, from before the
POST (`?wait_s=60`) until the verdict has been read; and by the replica, from
handing it to `OpenRun` until that gave its end (the header `Server-Timing`). The difference is the server's own part,
whatever else the machine did meanwhile. The same debates through `OpenRun` alone, in a process of their own, say what
the server's processes take from the engine. All of it shares the cores, clients too.

The bar: at 200 open debates the server adds less than 50 ms at p99 (`overhead_p99_ms`); a row says whether it holds
(`ok`).
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
from bench_runs import lamp

from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.run_config import RunConfig

OPEN, DEBATES = 200, 1000
MODEL = "simulated?latency_ms=1000"
BAR_P99_MS = 50.0
_WAIT_S = 60
_SPREAD_S = 5.0


async def _closed_loop(
    asked: list[dict[str, Any]], open_: int, one: Callable[[dict[str, Any]], Awaitable[None]]
) -> dict[str, float]:
    """Seconds that each debate took, by id, with so many open at once."""
    took: dict[str, float] = {}
    waiting = iter(asked)

    async def place(number: int) -> None:
        await asyncio.sleep(_SPREAD_S * number / open_)
        for case in waiting:
            started = time.perf_counter()
            await one(case)
            took[case["id"]] = time.perf_counter() - started

    await asyncio.gather(*(place(number) for number in range(open_)))
    return took


async def _engine(options: dict[str, Any], asked: list[dict[str, Any]], open_: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        run = OpenRun(RunConfig(out=f"{folder}/run", max_open=open_, **options))
        await run.open()

        async def one(case: dict[str, Any]) -> None:
            held = await run.run_case(case)
            assert not held.failure, held.error

        try:
            return await _closed_loop(asked, open_, one)
        finally:
            await run.close()


async def _online(place: str, asked: list[dict[str, Any]], open_: int) -> tuple[dict[str, float], dict[str, float]]:
    engine: dict[str, float] = {}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(place, connector=connector) as session:

        async def one(case: dict[str, Any]) -> None:
            method, place = "POST", "/v1/debates"
            told: dict[str, Any] = {"status": "queued"}
            while told["status"] in ("queued", "open"):
                body = case if method == "POST" else None
                async with session.request(method, f"{place}?wait_s={_WAIT_S}", json=body) as answer:
                    told = await answer.json()
                    assert answer.status in (200, 202), told
                    timing = answer.headers.get("Server-Timing", "")
                method, place = "GET", f"/v1/debates/{case['id']}"
            assert told["status"] == "done", told
            engine[case["id"]] = float(timing.removeprefix("engine;dur=")) / 1000

        return await _closed_loop(asked, open_, one), engine


def _served(
    options: dict[str, Any], asked: list[dict[str, Any]], open_: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Client's and engine's seconds by id."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "serve.yaml"
        config.write_text(json.dumps({"debates": options, "max_open": open_, "out": f"{folder}/served"}))
        command = [sys.executable, "-m", "moot", "serve", str(config), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            place = server.stdout.readline().split(" at ")[1].split()[0]
            try:
                return asyncio.run(_online(place, asked, open_))
            finally:
                server.terminate()
                server.communicate()


def _quantiles(values: list[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


def rows(debates: int = DEBATES, open_: int = OPEN) -> list[dict[str, Any]]:
    """One row per engine: milliseconds that the server adds, p50 and p99, and what both sides took."""
    found = []
    for name, options in (
        ("inline", {"engine": "inline", "model": MODEL}),
        ("packed", {"engine": "ray", "placement": "packed", "model": MODEL}),
        ("actors", {"engine": "ray", "model": MODEL}),
    ):
        asked = [lamp(number) for number in range(debates)]
        load = os.getloadavg()[0]
        plain = asyncio.run(_engine(options, asked, open_))
        online, inside = _served(options, asked, open_)
        over = [online[case_id] - inside[case_id] for case_id in plain]
        (p50, p99), (e50, e99), (o50, o99), (a50, a99) = map(
            _quantiles, (over, list(inside.values()), list(online.values()), list(plain.values()))
        )
        found.append(
            {
                "bench": "serve", "engine": name, "open": open_, "debates": debates,
                "overhead_p50_ms": round(1000 * p50, 1), "overhead_p99_ms": round(1000 * p99, 1),
                "bar_p99_ms": BAR_P99_MS, "ok": 1000 * p99 < BAR_P99_MS,
                "engine_p50_ms": round(1000 * e50, 1), "engine_p99_ms": round(1000 * e99, 1),
                "online_p50_ms": round(1000 * o50, 1), "online_p99_ms": round(1000 * o99, 1),
                "engine_alone_p50_ms": round(1000 * a50, 1), "engine_alone_p99_ms": round(1000 * a99, 1),
                "load_1min_before": round(load, 1), "cores": os.cpu_count(), "python": platform.python_version(),
            }
        )  # fmt: skip
    return found
