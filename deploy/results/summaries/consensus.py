"""The verdicts of a run that are a consensus of distributions, with what is needed to judge them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any, Literal, NamedTuple

from moot.actors.record.tables import read_table
from moot.deploy.results.distributions import Distribution
from moot.deploy.results.record.readers import decode_json, latest_verdicts
from moot.metrics.calibration_error import brier_multiclass
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


def consensus_verdicts(folder: str | Path) -> list[ConsensusVerdict]:
    """Those of a run's latest verdicts that did not fail, in order of case id.

    Raises:
        RecordError: when the record cannot be read.
    """
    more = {}
    for row in read_table(folder, "verdicts", ["confidence", "distribution", "payload"]).to_pylist():
        payload = ConsensusPayload.read(decode_json(row["payload"]))
        if payload is not None and payload.distribution_from == "consensus":
            more[row["case_id"], row["attempt"]] = (row, payload)
    latest = [verdict for verdict in latest_verdicts(folder) if not verdict.failed and verdict.key in more]
    if not latest:
        return []
    cases = {row["case_id"]: row for row in read_table(folder, "cases", ["question", "labels"]).to_pylist()}
    found = []
    for verdict in latest:
        row, payload = more[verdict.key]
        case: Mapping[str, Any] = cases.get(verdict.case_id, {})
        found.append(
            ConsensusVerdict(
                case_id=verdict.case_id,
                question=case.get("question") or "",
                how=verdict.how,
                gold=verdict.gold,
                answer=verdict.answer,
                correct=verdict.correct,
                confidence=row["confidence"],
                crit_mean=payload.crit_mean,
                labels=tuple(case.get("labels") or ()),
                distribution=decode_json(row["distribution"]) if row["distribution"] else None,
            )
        )
    return found


Unheld = Literal["no distribution", "no gold label", "gold outside the labels", "no distribution over the labels"]
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
) -> ScoredDistribution | Unheld:
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
