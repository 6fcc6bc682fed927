"""What OpenAI's `x-ratelimit-*` headers say of the limits that an endpoint holds us to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from moot.actors.models.interface import RateHeaders

_PREFIX = b"x-ratelimit-"
_PREFIX_LENGTH = len(_PREFIX)
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_PART = re.compile(rf"({_NUMBER.pattern})(ms|us|µs|ns|s|m|h|d)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LARGEST = 2**53


def rate_headers(raw: Iterable[tuple[bytes, bytes]]) -> RateHeaders | None:
    """The limits in a response's headers; None when it says nothing of them.

    A header that cannot be read counts as not sent. `reset_s` is the time until what is used up comes back, or, when
    nothing is used up, until all of it has.

    Args:
        raw: names and values as they were received, names in any case.
    """
    said = {name[_PREFIX_LENGTH:].lower(): value for name, value in raw if name[:_PREFIX_LENGTH].lower() == _PREFIX}
    if not said:
        return None
    limits = RateHeaders(
        requests_left=_count(said.get(b"remaining-requests")),
        requests_limit=_count(said.get(b"limit-requests")),
        tokens_left=_count(said.get(b"remaining-tokens")),
        tokens_limit=_count(said.get(b"limit-tokens")),
        reset_s=_reset(said),
    )
    return None if limits == RateHeaders() else limits


def _reset(said: dict[bytes, bytes]) -> float | None:
    waits = {kind: duration_s(said.get(b"reset-" + kind, b"").decode("latin-1")) for kind in (b"requests", b"tokens")}
    used_up = [waits[kind] for kind in waits if _count(said.get(b"remaining-" + kind)) == 0]
    known = [wait for wait in used_up or waits.values() if wait is not None]
    return max(known, default=None)


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


def _count(value: bytes | None) -> int | None:
    digits = (value or b"").strip()
    if not (digits.isdigit() and len(digits) <= 16):
        return None
    number = int(digits)
    return number if number < _LARGEST else None
