"""Debate result: how a debate ended; one type from its moderator to the caller of the debate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from zlib import crc32

import msgspec

from moot.actors.models.usage_totals import UsageTotals

PROMPT_CUT_FLAG = "prompt-cut"
"""Flag of a verdict that rests on a reply to a prompt that its server seems to have cut."""


class DebateResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of a debate: the verdict or the failure, and its cost.

    A protocol returns a `Verdict`, without data about a run. Its moderator builds this result from it; the record
    writer, the dispatchers, an open run, the HTTP service and Ray Data pass it on unchanged, and `moot.debate` adds
    replies. The only other types are the HTTP body (`VerdictBody`, for the documented schema) and, for records of any
    age, `VerdictRow` for counting and `VerdictView` for display.

    Attributes:
        case_id, attempt: key of the debate.
        answer: the chosen answer; None when there is none.
        how: how the answer was reached, such as `skipped` or `stable-agree`; `failed` without a verdict.
        confidence: in [0, 1]; None when unknown.
        distribution: probability per label; None without one.
        rounds: debate rounds after the independent answers.
        flags: marks for the reader.
        payload: the protocol's own result.
        failure, error: kind and message of a failure; empty with a verdict.
        calls: replies that the verdict depends on.
        prompt_tokens, completion_tokens: of those replies; lower bounds where `calls_without_usage` is not 0.
        calls_without_usage: replies with incomplete usage.
        wall_s: seconds from the debate's start to its verdict, when it ran.
        usage: usage of those replies by model. A writer counts it itself.
        cost_usd: cost of those replies when they were paid for; None when a price or a usage is unknown, and before an
            open run has looked up prices.
        reused: whether it was already on record, so that nothing was paid for.
        replies: ids of those replies by path, for the writer, which commits a verdict only with them; else empty.
        noted_in: incarnation of the writer that received the debate's first events (see `RecordWriter.incarnation`),
            for that writer; empty without events, or with the writer in the same process.
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
    usage: dict[str, UsageTotals] = {}
    cost_usd: float | None = None
    reused: bool = False
    replies: dict[str, str] = {}
    noted_in: str = ""

    def used_more_than(self, paid: Mapping[str, UsageTotals]) -> bool:
        """Whether the debate depends on replies beyond those in `paid`: recorded before, or of another run."""
        return any(each.tokens > (paid[model].tokens if model in paid else 0) for model, each in self.usage.items())


WITHDRAWN, STOPPED = "withdrawn", "stopped"
"""Reasons why a debate was cancelled without a verdict: its submitter cancelled it; the run stopped by itself."""


class DebateEnd(msgspec.Struct, frozen=True):
    """End of an assigned debate, whichever way it ended: the one message after which nothing is kept of it as open.

    Attributes:
        case_id, attempt: key of the debate.
        cancelled: `WITHDRAWN` or `STOPPED`; empty for a debate with a verdict, and for one that waits for a person.
    """

    case_id: str
    attempt: int
    cancelled: str = ""


VERDICT_COLUMNS = tuple(
    name
    for name in DebateResult.__struct_fields__
    if name not in {"usage", "cost_usd", "reused", "replies", "noted_in"}
)
"""Columns of the table `verdicts`; the other fields exist only while a caller waits for the debate."""


def writer_of(case_id: str, writers: int) -> int:
    """Number of the writer that owns a case, of `writers`: a stable hash, so that there is one writer per case."""
    return crc32(case_id.encode()) % writers
