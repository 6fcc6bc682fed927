"""Debate result: how a debate ended, the same type from its moderator to whoever asked for the debate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from zlib import crc32

import msgspec


class ModelUsage(msgspec.Struct):
    """Token usage of the replies of one model.

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


class DebateResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a debate ended: the verdict or the failure, and what it took.

    A protocol returns a `Verdict`, which knows nothing of a run. Its moderator makes this of it, and the record's
    writer, the dispatchers, an open run, the HTTP service and Ray Data take it as it is; `moot.debate` adds replies.
    Beside it there are only the HTTP body (`VerdictBody`, for the documented schema), and of a record of any age
    `VerdictRow` for counting and `VerdictView` for showing.

    Attributes:
        case_id, attempt: which debate.
        answer: the chosen answer; None when there is none.
        how: how it was reached, as `skipped` or `stable-agree`; `failed` without a verdict.
        confidence: in [0, 1]; None when unknown.
        distribution: probability per label; None when the protocol gives none.
        rounds: debate rounds after the independent answers.
        flags: marks a reader should see.
        payload: the protocol's own result.
        failure, error: why there is no verdict; empty when there is one.
        calls: replies that the verdict rests on.
        prompt_tokens, completion_tokens: of those replies; lower bounds where `calls_without_usage` is not 0.
        calls_without_usage: replies that did not say all that they used.
        wall_s: seconds from the debate's start to its verdict, at the time when it ran.
        usage: what those replies used, by model. A writer counts for itself.
        cost_usd: what those replies cost when they were paid for; None when a price or a usage is unknown, and before
            an open run has asked for prices.
        reused: whether it was on record already, so that nothing was paid for now.
        replies: ids of those replies by path, for the writer, which commits a verdict only with them; else empty.
        noted_in: the incarnation of the writer that took the debate's first events (see `RecordWriter.incarnation`),
            for that writer; empty when there are none, or when the writer lives in the same process.
    """

    case_id: str
    attempt: int
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
    usage: dict[str, ModelUsage] = {}
    cost_usd: float | None = None
    reused: bool = False
    replies: dict[str, str] = {}
    noted_in: str = ""

    def used_more_than(self, paid: Mapping[str, ModelUsage]) -> bool:
        """Whether the debate depends on replies beyond those that `paid` counts: recorded before, or of another run."""
        return any(each.tokens > (paid[model].tokens if model in paid else 0) for model, each in self.usage.items())


VERDICT_COLUMNS = tuple(
    name
    for name in DebateResult.__struct_fields__
    if name not in {"usage", "cost_usd", "reused", "replies", "noted_in"}
)
"""The fields that the table `verdicts` has; the others are known only while a caller waits for the debate."""


def writer_of(case_id: str, writers: int) -> int:
    """Number of the writer that owns a case, of so many: a stable hash, so there is one writer per case."""
    return crc32(case_id.encode()) % writers
