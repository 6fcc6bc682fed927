"""`moot simulate` in a thread of this process."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.simulated.draws import stable_uniform
from moot.actors.models.trial import STEP_KEY
from moot.deploy.simulation.server import SimulateOptions, serve

_HANGS = 0.999
ANSWERS_ONLY_THE_PROBE: dict[str, Any] = {
    "hang_rate": _HANGS,
    "seed": next(seed for seed in itertools.count() if stable_uniform(seed, "hang", STEP_KEY, 0) >= _HANGS),
}
"""Options of a server that all other calls wait for."""


def stats_of(port: int) -> dict[str, Any]:
    """What a server has served so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=30) as reply:
        found: dict[str, Any] = json.load(reply)
        return found


@contextmanager
def simulated_server(key: AnswerKey | None, **options: Any) -> Iterator[int]:
    """Serves while inside; gives the port."""
    port: Future[int] = Future()
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve(SimulateOptions(**options), key, port.set_result))

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.close()

    thread = threading.Thread(target=run, name="simulated server", daemon=True)
    thread.start()
    try:
        yield port.result(30)
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(30)
