"""The verdicts of a run that are a consensus of distributions, with what is needed to judge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Literal, NamedTuple

from moot.deploy.results.distributions import Distribution
from moot.deploy.results.record.readers import decode_json
from moot.deploy.results.record.run_record import RunRecord, once_per_record
from moot.metrics.brier import brier_multiclass
from moot.protocols.distribution import OTHER
from moot.protocols.evince.events import ConsensusPayload


@dataclass(frozen=True, slots=True)
class ConsensusVerdict:
    """Finished verdict whose payload has `distribution_from: consensus`.

    Attributes:
        gold: the label that the task's file calls right; None without one.
        answer: the likeliest label; None when mass outside the labels leads.
        correct: whether they agree; None when unknown.
        confidence: probability of the answer; None when unknown.
        crit_mean: mean CRIT score of the sides, in [0, 1]; None when unknown.
        labels: the closed set.
        distribution: over the labels and what is outside; None when it is not on record.
    """

    case_id: str
    question: str
    how: str
    gold: str | None
    answer: str | None
    correct: bool | None
    confidence: float | None
    crit_mean: float | None
    labels: tuple[str, ...]
    distribution: Distribution | None


@once_per_record
def consensus_verdicts(record: RunRecord) -> list[ConsensusVerdict]:
    """Those of a run's latest verdicts that did not fail, in order of case id.

    Raises:
        RecordError: when the record cannot be read.
    """
    payloads = {
        key: payload
        for key, payload in record.payloads(ConsensusPayload, '"consensus"')
        if payload.distribution_from == "consensus"
    }
    latest = [verdict for verdict in record.verdicts if not verdict.failed and verdict.key in payloads]
    if not latest:
        return []
    table = record.verdict_table
    columns = (table[name].to_pylist() for name in ("case_id", "attempt", "confidence", "distribution"))
    stated = {(case_id, attempt): more for case_id, attempt, *more in zip(*columns, strict=True)}
    columns = (record.cases[name].to_pylist() for name in ("case_id", "question", "labels"))
    cases = {case_id: more for case_id, *more in zip(*columns, strict=True)}
    found = []
    for verdict in latest:
        confidence, distribution = stated[verdict.key]
        question, labels = cases.get(verdict.case_id, (None, None))
        found.append(
            ConsensusVerdict(
                case_id=verdict.case_id,
                question=question or "",
                how=verdict.how,
                gold=verdict.gold,
                answer=verdict.answer,
                correct=verdict.correct,
                confidence=confidence,
                crit_mean=payloads[verdict.key].crit_mean,
                labels=tuple(labels or ()),
                distribution=decode_json(distribution) if distribution else None,
            )
        )
    return found


Unscorable = Literal["no distribution", "no gold label", "gold outside the labels", "no distribution over the labels"]
"""Reasons why a distribution has no score, in the order of the checks."""


class ScoredDistribution(NamedTuple):
    """A distribution with a known truth.

    Attributes:
        row: probability of each of the case's labels, in their order, then of what is outside (`OTHER`); sums to 1.
        truth: the true label's place in it.
        brier: multi-class, 0 to 2.
    """

    row: list[float]
    truth: int
    brier: float


def score_distribution(
    distribution: Distribution | None, labels: Sequence[str], gold: str | None
) -> ScoredDistribution | Unscorable:
    """Score a distribution, or say why that cannot be done.

    A label that it does not name has the probability 0 in it. A case without a closed set has no label that could be
    true in it; a distribution with an unknown share, or with mass on something that is neither a label nor `OTHER`, is
    none over the labels.

    Args:
        distribution: as the verdict has it; None or empty for none.
        labels: the case's closed set; empty for none.
        gold: what the task calls right; None without it.

    >>> score_distribution({"other": 0.5, "(other)": 0.5}, ("yes", "other"), "other").brier
    0.5
    >>> score_distribution({"yes": 1.0}, ("yes", "no"), "maybe")
    'gold outside the labels'
    """
    if not distribution:
        return "no distribution"
    if gold is None:
        return "no gold label"
    if gold not in labels:
        return "gold outside the labels"
    shares = [distribution.get(label, 0.0) for label in (*labels, OTHER)]
    row = [nan if share is None else share for share in shares]
    truth = list(labels).index(gold)
    brier = float(brier_multiclass(row, truth))
    return "no distribution over the labels" if isnan(brier) else ScoredDistribution(row, truth, brier)
