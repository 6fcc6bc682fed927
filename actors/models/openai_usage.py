"""Usage as servers state it, believed only where it can be a count."""

from __future__ import annotations

from typing import Any

import msgspec

from moot.protocols.messages import Usage

_MOST_TOKENS = 2**31 - 1
"""What the record's columns hold; a server that says more is not believed."""


class WireUsage(msgspec.Struct):
    """A reply's `usage` as it is sent."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    completion_tokens_details: Any = None


def usage_of(usage: WireUsage | None) -> Usage:
    """The counts; None where the server said none, or no number of tokens."""
    if usage is None:
        return Usage()
    details = usage.completion_tokens_details
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return Usage(token_count(usage.prompt_tokens), token_count(usage.completion_tokens), token_count(reasoning))


def token_count(value: object) -> int | None:
    """A number of tokens as a server states it; None for what cannot be one."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None
