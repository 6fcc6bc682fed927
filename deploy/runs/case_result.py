"""How a case that was brought to an open run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moot.actors.dispatch.case_router import SubmissionResult
from moot.actors.models.prices import Price, cost_usd
from moot.protocols.messages import Usage


@dataclass(frozen=True)
class CaseResult:
    """The end of one debate.

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
        cost_usd: what those replies cost when they were paid for; None when a price or a usage is unknown.
        wall_s: seconds from the debate's opening to its verdict, at the time when it was held.
        reused: whether it was on record already, so that nothing was paid for now.
    """

    case_id: str
    attempt: int
    answer: str | None
    how: str
    confidence: float | None
    distribution: Mapping[str, float] | None
    rounds: int
    flags: tuple[str, ...]
    payload: Mapping[str, Any]
    failure: str
    error: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    calls_without_usage: int
    cost_usd: float | None
    wall_s: float
    reused: bool


def case_result(told: SubmissionResult, prices: Mapping[str, Price]) -> CaseResult:
    """The end that the reception tells, with what it cost."""
    verdict_record = told.ended.verdict_record
    usage = {
        model: Usage() if used.unknown else Usage(used.prompt_tokens, used.completion_tokens)
        for model, used in told.ended.usage.items()
    }
    return CaseResult(
        case_id=verdict_record.case_id,
        attempt=verdict_record.attempt,
        answer=verdict_record.answer,
        how=verdict_record.how,
        confidence=verdict_record.confidence,
        distribution=verdict_record.distribution,
        rounds=verdict_record.rounds,
        flags=verdict_record.flags,
        payload=verdict_record.payload,
        failure=verdict_record.failure,
        error=verdict_record.error,
        calls=verdict_record.calls,
        prompt_tokens=verdict_record.prompt_tokens,
        completion_tokens=verdict_record.completion_tokens,
        calls_without_usage=verdict_record.calls_without_usage,
        cost_usd=cost_usd(usage, prices),
        wall_s=verdict_record.wall_s,
        reused=told.reused,
    )
