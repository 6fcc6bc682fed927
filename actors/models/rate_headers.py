"""What a vendor's response headers say of the limits that its endpoint holds us to."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from moot.actors.models.interface import RateHeaders

_PREFIX = b"x-ratelimit-"
_PREFIX_LENGTH = len(_PREFIX)
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_PART = re.compile(rf"({_NUMBER.pattern})(ms|us|µs|ns|s|m|h|d)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LARGEST = 2**53
_KINDS = ("requests", "tokens")


def rate_headers(raw: Iterable[tuple[bytes, bytes]]) -> RateHeaders | None:
    """The limits in OpenAI's `x-ratelimit-*` headers; None when they say nothing of them.

    A header that cannot be read counts as not sent. `reset_s` is the time until what is used up comes back, or, when
    nothing is used up, until all of it has.

    Args:
        raw: names and values as they were received, names in any case.
    """
    said = {name[_PREFIX_LENGTH:].lower(): value for name, value in raw if name[:_PREFIX_LENGTH].lower() == _PREFIX}
    if not said:
        return None
    return _limits(lambda kind, what: said.get(f"{what}-{kind}".encode(), b"").decode("latin-1"), duration_s)


def anthropic_rate_headers(headers: Mapping[str, str], now: float) -> RateHeaders | None:
    """The same of Anthropic's headers, whose times are read against the response's own `Date`, so that a wrong clock
    here does no harm.

    Args:
        headers: with case-insensitive lookup.
        now: seconds since the epoch, for a response without a date.
    """
    sent_at = _date(headers.get("date"), now)
    return _limits(
        lambda kind, what: headers.get(f"anthropic-ratelimit-{kind}-{what}", ""), lambda value: _until(value, sent_at)
    )


def _limits(stated: Callable[[str, str], str], seconds: Callable[[str], float | None]) -> RateHeaders | None:
    left = {kind: _count(stated(kind, "remaining")) for kind in _KINDS}
    used_up = [kind for kind in _KINDS if left[kind] == 0] or _KINDS
    waits = [wait for kind in used_up if (wait := seconds(stated(kind, "reset"))) is not None]
    found = RateHeaders(
        requests_left=left["requests"],
        requests_limit=_count(stated("requests", "limit")),
        tokens_left=left["tokens"],
        tokens_limit=_count(stated("tokens", "limit")),
        reset_s=max(waits, default=None),
    )
    return None if found == RateHeaders() else found


def duration_s(text: str) -> float | None:
    """Seconds in a duration as OpenAI writes it, or in a bare number; None for anything else.

    >>> duration_s("6m0s"), duration_s("20ms"), duration_s("1h2.5s"), duration_s("3"), duration_s("soon")
    (360.0, 0.02, 3602.5, 3.0, None)
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))


def _count(value: str) -> int | None:
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 16):
        return None
    number = int(digits)
    return number if number < _LARGEST else None


def _date(value: str | None, now: float) -> float:
    try:
        return parsedate_to_datetime(value).timestamp() if value else now
    except (ValueError, TypeError, OverflowError):
        return now


def _until(value: str, now: float) -> float | None:
    """Seconds until an RFC 3339 time, 0 when it is past; a time without a zone is not believed."""
    try:
        moment = datetime.fromisoformat(value)
        seconds = moment.timestamp() - now if moment.tzinfo else math.nan
    except (ValueError, OverflowError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
