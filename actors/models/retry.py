"""Retry policy: which failures of a model call are retried, and after which wait."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, TypeVar

import structlog
from pydantic import BaseModel, ConfigDict, Field

from moot.actors.models.interface import ModelError, ModelReply

log = structlog.get_logger(__name__)

T = TypeVar("T")

RETRIED_KINDS = frozenset({"rate_limited", "server", "connection", "timeout"})
"""Kinds of failure that are retried; all others are raised at once."""

_LIMITED_PER_ATTEMPT = 5

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RetryPolicy(BaseModel):
    """Retry policy: bounds of the retries of one call.

    Attributes:
        max_attempts: most requests, the first included; one with a 429 counts a fifth, because the server is up.
        total_s: no attempt begins later than this many seconds after the first one began.
        base_s: upper end of the first random wait; it doubles with each further attempt.
        cap_s: upper end of any random wait.
        retry_after_cap_s: longest wait that a server can request.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: Annotated[int, Field(ge=1)] = 6
    total_s: Seconds = 120.0
    base_s: Seconds = 0.5
    cap_s: Seconds = 20.0
    retry_after_cap_s: Seconds = 60.0

    def wait_s(self, attempt: int, retry_after_s: float | None, uniform: Callable[[float, float], float]) -> float:
        """Backoff in seconds after the failed `attempt` (1-based).

        Full jitter: uniform in [0, min(cap_s, base_s * 2^(attempt-1))]. A server's `Retry-After` takes precedence, with
        the first jitter on top: clients with the same `Retry-After` do not return together.
        """
        if retry_after_s is not None:
            return min(retry_after_s, self.retry_after_cap_s) + uniform(0.0, min(self.cap_s, self.base_s))
        return uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, 60)))


async def call_with_retries(
    policy: RetryPolicy,
    attempt: Callable[[], Awaitable[T]],
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    uniform: Callable[[float, float], float] = random.uniform,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Calls `attempt` until it succeeds, with retries; sets `http_attempts` of a model's reply.

    Cancelling cancels the current attempt or wait at once.

    Args:
        policy: bounds of the retries.
        attempt: makes one call; called again for each attempt.
        sleep, uniform, clock: for waiting, random jitter and the time (seconds); replaced in tests.

    Raises:
        ModelError: the last one, when it was replayed, its kind is not in `RETRIED_KINDS`, the attempts are used
            up, or the next wait would pass `total_s`.
    """
    start = clock()
    number, used = 1, 0
    while True:
        try:
            found = await attempt()
        except ModelError as error:
            used += 1 if error.kind == "rate_limited" else _LIMITED_PER_ATTEMPT
            if error.replayed or error.kind not in RETRIED_KINDS or used >= policy.max_attempts * _LIMITED_PER_ATTEMPT:
                raise
            wait = policy.wait_s(number, error.retry_after_s, uniform)
            if clock() - start + wait > policy.total_s:
                raise
            log.info("model call retried", kind=error.kind, attempt=number, wait_s=round(wait, 3))
        else:
            if isinstance(found, ModelReply) and found.http_attempts != number:
                return replace(found, http_attempts=number)
            return found
        number += 1
        await sleep(wait)
