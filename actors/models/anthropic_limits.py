"""The rate limits that Anthropic states in the headers of its responses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from moot.actors.models.interface import RateHeaders

_PREFIX = "anthropic-ratelimit-"


def rate_headers(headers: Mapping[str, str], now: float) -> RateHeaders | None:
    """What the headers say; None when they say nothing legible.

    The times in them are read against the response's own `Date`, so that a wrong clock here does no harm. `reset_s` is
    that of what is used up; of all limits, when none is.

    Args:
        headers: with case-insensitive lookup.
        now: seconds since the epoch, for a response without a date.
    """
    sent_at = _date(headers.get("date"), now)
    left = {kind: _number(headers.get(f"{_PREFIX}{kind}-remaining")) for kind in ("requests", "tokens")}
    resets = {kind: _until(headers.get(f"{_PREFIX}{kind}-reset"), sent_at) for kind in ("requests", "tokens")}
    used_up = [kind for kind, number in left.items() if number == 0] or list(left)
    waits = [wait for kind in used_up if (wait := resets[kind]) is not None]
    found = RateHeaders(
        requests_left=left["requests"],
        requests_limit=_number(headers.get(f"{_PREFIX}requests-limit")),
        tokens_left=left["tokens"],
        tokens_limit=_number(headers.get(f"{_PREFIX}tokens-limit")),
        reset_s=max(waits, default=None),
    )
    return None if found == RateHeaders() else found


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 16 else None


def _date(value: str | None, now: float) -> float:
    try:
        return parsedate_to_datetime(value).timestamp() if value else now
    except (ValueError, TypeError, OverflowError):
        return now


def _until(value: str | None, now: float) -> float | None:
    """Seconds until an RFC 3339 time, 0 when it is past; a time without a zone is not believed."""
    try:
        moment = datetime.fromisoformat(value or "")
        seconds = moment.timestamp() - now if moment.tzinfo else math.nan
    except (ValueError, OverflowError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
