"""The end of a debate as its moderator reports it, and which of several writers it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from zlib import crc32

import msgspec


class VerdictRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A debate's end, as its moderator reports it: the verdict and the replies that it rests on.

    Attributes:
        noted_in: the life of the writer that took the debate's first notes (see `RecordWriter.incarnation`); empty when
        there are none, or when the writer lives in the same process.
    """

    case_id: str
    attempt: int
    replies: dict[str, str]
    noted_in: str = ""
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


class DebateResult(msgspec.Struct, frozen=True):
    """A debate's end for whoever brought its case.

    Attributes:
        closing: the verdict; of one that is read from the record `replies` is empty.
        usage: what the replies that it rests on used, by model.
    """

    verdict_record: VerdictRecord
    usage: dict[str, ModelUsage]

    def used_more_than(self, paid: Mapping[str, ModelUsage]) -> bool:
        """Whether the debate rests on replies beyond those that `paid` counts: on record, or of another run."""
        return any(each.tokens > (paid[model].tokens if model in paid else 0) for model, each in self.usage.items())


class ModelUsage(msgspec.Struct):
    """What replies of one model used.

    Attributes:
        prompt_tokens, completion_tokens: as far as they are known.
        unknown: replies that did not say all that they used.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    unknown: int = 0

    def add(self, prompt: int | None, completion: int | None, *, complete: bool = True) -> None:
        """Count one reply; `complete` is False when it may have used more than it says."""
        self.prompt_tokens += prompt or 0
        self.completion_tokens += completion or 0
        self.unknown += not complete or prompt is None or completion is None

    @property
    def tokens(self) -> int:
        """Of prompts and replies together, as far as they are known."""
        return self.prompt_tokens + self.completion_tokens


def writer_of(case_id: str, writers: int) -> int:
    """Which of `writers` recorders owns a case: a stable hash, so there is one writer per case."""
    return crc32(case_id.encode()) % writers
