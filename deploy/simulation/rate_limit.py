"""The server's rate limit: a token bucket, and what its responses say of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a bucket holds at one moment.

    Attributes:
        limit: the most requests that it ever lets through at once; at least 1.
        left: requests that it lets through now; 0 to `limit`.
        full_in_ms: milliseconds until it is full again, rounded up; 0 when it is.
    """

    limit: int
    left: int
    full_in_ms: int


class RateLimit:
    """A token bucket that holds one second's worth of requests, at least one, and starts full.

    Args:
        per_minute: requests that it lets through each minute, above 0.
        now: a monotonic clock in seconds.
    """

    def __init__(self, per_minute: float, now: Callable[[], float]) -> None:
        self._per_second = per_minute / 60.0
        self._size = max(1.0, self._per_second)
        self._held, self._now, self._filled_at = self._size, now, now()

    def wait_s(self) -> float:
        """0 and one request taken from the bucket, or the seconds until it will hold one."""
        self._fill()
        if self._held >= 1.0:
            self._held -= 1.0
            return 0.0
        return (1.0 - self._held) / self._per_second

    def allowance(self) -> Allowance:
        """What the bucket holds now; takes nothing from it."""
        self._fill()
        missing_ms = (self._size - self._held) / self._per_second * 1000.0
        return Allowance(int(self._size), int(self._held), math.ceil(missing_ms - _ROUNDING))

    def _fill(self) -> None:
        now = self._now()
        self._held = min(self._size, self._held + (now - self._filled_at) * self._per_second)
        self._filled_at = now


def retry_headers(wait_s: float) -> dict[str, str]:
    """`Retry-After` in whole seconds, at least 1, and `retry-after-ms`, which OpenAI's clients prefer."""
    return {
        "Retry-After": str(max(1, math.ceil(wait_s))),
        "retry-after-ms": str(max(1, math.ceil(wait_s * 1000.0))),
    }


def openai_rate_headers(allowance: Allowance, now: datetime) -> dict[str, str]:
    """As OpenAI says it; the reset is the time until the bucket is full."""
    return {
        "x-ratelimit-limit-requests": str(allowance.limit),
        "x-ratelimit-remaining-requests": str(allowance.left),
        "x-ratelimit-reset-requests": _duration(allowance.full_in_ms),
    }


def anthropic_rate_headers(allowance: Allowance, now: datetime) -> dict[str, str]:
    """As Anthropic says it; the reset is the moment at which the bucket is full, by the clock that `Date` states.

    `Date` has no fractions of a second. It is sent along, so that both are of one moment: the difference is exact.

    Args:
        now: with a time zone.
    """
    sent_at = now.astimezone(UTC).replace(microsecond=0)
    full_at = sent_at + timedelta(milliseconds=allowance.full_in_ms)
    return {
        "Date": format_datetime(sent_at, usegmt=True),
        "anthropic-ratelimit-requests-limit": str(allowance.limit),
        "anthropic-ratelimit-requests-remaining": str(allowance.left),
        "anthropic-ratelimit-requests-reset": full_at.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z",
    }


def _duration(milliseconds: int) -> str:
    """As OpenAI writes one: `0s`, `20ms`, `1.5s`, `6m0s`."""
    if 0 < milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    seconds = f"{rest / 1000:g}s"
    return f"{minutes}m{seconds}" if minutes else seconds
