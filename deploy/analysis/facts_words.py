"""What an analysis is over, in words: what was counted, and what had to be left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from moot.deploy.reading.summaries.model_replies import warnings_of
from moot.deploy.reading.summaries.model_replies_show import replies_words

if TYPE_CHECKING:
    from moot.deploy.analysis.analysis import Facts


FEW_GROUPS = 30
"""Below, intervals that come from drawing whole groups are too narrow."""


def facts_in_words(facts: Facts) -> list[str]:
    """One line for each thing that a reader must know; nothing is said of what there is none of."""
    return list(_lines(facts))


def _lines(facts: Facts) -> Iterator[str]:
    groups = f" in {facts.groups:,} groups" if facts.groups != facts.cases else ""
    yield f"{', '.join(facts.sources)}: {_count(facts.replies, 'reply', 'replies')} on {_cases(facts.cases)}{groups}"
    with_logprobs = f"{facts.with_logprobs:,} with token log-probabilities"
    yield f"{facts.judged:,} judged, {facts.scored:,} on cases that can be scored, {with_logprobs}"
    if facts.groups < FEW_GROUPS:
        independent = _count(facts.groups, "independent case", "independent cases")
        yield f"{independent}: below about {FEW_GROUPS} the intervals are too narrow"
    if without := facts.replies - facts.with_logprobs:
        yield (
            f"{_count(without, 'reply', 'replies')} without log-probabilities: left out of every figure about "
            "confidence, kept in the others"
        )
    if facts.empty:
        yield f"{_count(facts.empty, 'reply', 'replies')} of no token: without any feature"
    if facts.one_token:
        yield f"{_count(facts.one_token, 'reply', 'replies')} of one token: without a slope"
    if facts.unknown_tokens:
        yield (
            f"{_count(facts.unknown_tokens, 'token', 'tokens')} whose log-probability is none (not finite, or a "
            "vendor's -9999): windows that hold one are left out"
        )
    if facts.model_replies:
        yield f"replies in these runs: {replies_words(facts.model_replies)}"
    for warning in warnings_of(facts.model_replies):
        yield f"warning: {warning}"
    for reason, count in facts.left_out.items():
        yield f"{_count(count, 'reply', 'replies')} {reason}: left out"


def _count(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _cases(count: int) -> str:
    return _count(count, "case", "cases")
