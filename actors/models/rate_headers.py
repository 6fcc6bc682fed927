"""Rate-limit headers of vendors' responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from moot.actors.models.interface import RateHeaders

_PREFIX = b"x-ratelimit-"
_PREFIX_LENGTH = len(_PREFIX)
_LARGEST = 2**53


def rate_headers(raw: Iterable[tuple[bytes, bytes]]) -> RateHeaders | None:
    """Parses OpenAI's `x-ratelimit-*` headers; None without any.

    Args:
        raw: names and values as received, names in any case; unreadable ones are ignored.
    """
    headers = {name[_PREFIX_LENGTH:].lower(): value for name, value in raw if name[:_PREFIX_LENGTH].lower() == _PREFIX}
    if not headers:
        return None
    return _limits(lambda what, kind: headers.get(f"{what}-{kind}".encode(), b"").decode("latin-1"))


def anthropic_rate_headers(headers: Mapping[str, str]) -> RateHeaders | None:
    """Parses Anthropic's rate-limit headers, with case-insensitive lookup."""
    return _limits(lambda what, kind: headers.get(f"anthropic-ratelimit-{kind}-{what}", ""))


def _limits(stated: Callable[[str, str], str]) -> RateHeaders | None:
    found = RateHeaders(
        requests_left=_count(stated("remaining", "requests")),
        requests_limit=_count(stated("limit", "requests")),
        tokens_left=_count(stated("remaining", "tokens")),
        tokens_limit=_count(stated("limit", "tokens")),
    )
    return None if found == RateHeaders() else found


def _count(value: str) -> int | None:
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 16):
        return None
    number = int(digits)
    return number if number < _LARGEST else None
