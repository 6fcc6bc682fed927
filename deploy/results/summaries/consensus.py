"""Consensus verdicts: the verdicts of a run that are a consensus of distributions, and the score of a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan
from typing import Literal, NamedTuple

from moot.deploy.results.distributions import Distribution
from moot.deploy.results.record.readers import decode_json
from moot.deploy.results.record.run_record import RunRecord, once_per_record
from moot.metrics.brier import brier_multiclass
from moot.protocols.distribution import OTHER
from moot.protocols.evince.events import ConsensusPayload

_CONVERGED = {"converged": True, "stalled": False, "ensemble": False, "alone": False}
"""Whether the sides had converged, where the end of a debate says so by itself."""


@dataclass(frozen=True)
class ConsensusVerdict:
    """Finished verdict whose payload has `distribution_from: consensus`.

    Attributes:
        gold: the gold label; None without one.
        answer: the likeliest label; None when the mass outside the labels is larger.
        correct: whether the answer is right; None when unknown.
        confidence: probability of the answer; None when unknown.
        crit_mean: mean CRIT score of the sides, in [0, 1]; None when unknown.
        converged: whether the sides had converged, whatever rule ended the debate; None when unknown.
        labels: the closed set.
        distribution: probabilities of the labels and of other answers; None when it is not recorded.
    """

    case_id: str
    question: str
    gold: str | None
    answer: str | None
    correct: bool | None
    confidence: float | None
    crit_mean: float | None
    converged: bool | None
    labels: tuple[str, ...]
    distribution: Distribution | None

    @cached_property
    def score(self) -> ScoredDistribution | Unscorable:
        """Score of the distribution, or the reason why it has none; computed once, because several figures use it."""
        return score_distribution(self.distribution, self.labels, self.gold)


@once_per_record
def consensus_verdicts(record: RunRecord) -> list[ConsensusVerdict]:
    """Consensus verdicts of a run's latest attempts, without failed cases, in order of case id.

    Raises:
        RecordError: the record cannot be read.
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
        payload = payloads[verdict.key]
        question, labels = cases.get(verdict.case_id, (None, None))
        found.append(
            ConsensusVerdict(
                case_id=verdict.case_id,
                question=question or "",
                gold=verdict.gold,
                answer=verdict.answer,
                correct=verdict.correct,
                confidence=confidence,
                crit_mean=payload.crit_mean,
                converged=_CONVERGED.get(verdict.how) if payload.converged is None else payload.converged,
                labels=tuple(labels or ()),
                distribution=decode_json(distribution) if distribution else None,
            )
        )
    return found


Unscorable = Literal["no distribution", "no gold label", "gold outside the labels", "no distribution over the labels"]
"""Reasons why a distribution has no score, in the order of the checks."""


class ScoredDistribution(NamedTuple):
    """Distribution with a known true label, and its Brier score.

    Attributes:
        row: probabilities of the case's labels, in their order, then of other answers (`OTHER`); sum 1.
        truth: index of the true label in `row`.
        brier: multi-class Brier score, 0 to 2.
    """

    row: list[float]
    truth: int
    brier: float


def score_distribution(
    distribution: Distribution | None, labels: Sequence[str], gold: str | None
) -> ScoredDistribution | Unscorable:
    """Score of a distribution, or the reason why it has none.

    A label that is missing in the distribution has the probability 0. The gold label of a case without a closed set is
    outside the labels. A distribution with an unknown probability, or with mass on something other than the labels and
    `OTHER`, is no distribution over the labels.

    Args:
        distribution: the verdict's; None or empty without one.
        labels: the case's closed set; empty without one.
        gold: the gold label; None without one.

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
