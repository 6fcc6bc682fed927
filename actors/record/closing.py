"""The end of a debate as its moderator reports it, and which of several writers it goes to."""

from __future__ import annotations

from typing import Annotated, Any
from zlib import crc32

import msgspec


class Closing(msgspec.Struct, frozen=True, kw_only=True):
    """A debate's end, as its moderator reports it: the verdict and the replies that it rests on."""

    case_id: str
    attempt: int
    replies: dict[str, str]
    answer: str | None = None
    how: str = ""
    confidence: float | None = None
    distribution: dict[str, float] | None = None
    rounds: Annotated[int, msgspec.Meta(ge=0, le=32767)] = 0
    flags: tuple[str, ...] = ()
    payload: dict[str, Any] = {}
    failure: str = ""
    error: str = ""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls_without_usage: int = 0
    wall_s: float = 0.0


def writer_of(case_id: str, writers: int) -> int:
    """Which of `writers` recorders owns a case: a stable hash, so there is one writer per case."""
    return crc32(case_id.encode()) % writers
