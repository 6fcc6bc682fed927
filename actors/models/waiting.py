"""Says what is waited for before a run, where that takes long: a user who sees nothing takes it for a hang."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

_log = structlog.get_logger(__name__)

WAITED_S = 5.0
"""Seconds without a reply after which the user is told what is waited for."""


@contextmanager
def told_when_long(waiting_for: str, *, model: str, at_most_s: float) -> Iterator[None]:
    """Tell once, after `WAITED_S`, that something is waited for; on the running event loop.

    Args:
        waiting_for: what, why that may take long, and what can be done, as a line that begins with "waiting for".
        model: its name.
        at_most_s: seconds after which it is given up.
    """
    told = asyncio.get_running_loop().call_later(
        WAITED_S, lambda: _log.warning(waiting_for, model=model, waits_at_most_s=at_most_s)
    )
    try:
        yield
    finally:
        told.cancel()
