"""`moot simulate` in a thread of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from moot.actors.models.answer_key import AnswerKey
from moot.deploy.simulation.server import SimulateOptions, serve


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
