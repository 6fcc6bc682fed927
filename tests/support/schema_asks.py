"""Asks that are constrained to a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from moot.protocols.registry import PROTOCOLS, make_protocol

LABELS = ("No", "Not sure", 'the "big" one', "да")


DEFAULT_TOKENS = 400


WHOLE: tuple[str, dict[str, Any]] = ("socrasynth", {"topics.ask_balance": True, "panel": "whole", "versus_qa": True})
"""Protocol with settings whose reply types are requested only with these settings."""


def asked() -> Iterator[tuple[str, type[BaseModel], int]]:
    """Every reply type that a protocol requests, with its maximum tokens."""
    for name, settings in [*((name, {}) for name in PROTOCOLS), WHOLE]:
        protocol: Any = make_protocol(name, settings)
        for family, replies in protocol.replies.items():
            tokens = getattr(protocol, "reply_tokens", {}).get(family, DEFAULT_TOKENS)
            for reply in replies:
                yield f"{name}-{family}-{reply.__name__}", reply, tokens
