"""The verdicts of a run that are a consensus of distributions, with what is needed to judge them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.actors.record.tables import read_table
from moot.deploy.reading.distributions import Distribution
from moot.deploy.reading.record import decoded, latest_verdicts


@dataclass(frozen=True, slots=True)
class ConsensusVerdict:
    """A finished verdict whose payload says `distribution_from: consensus`.

    Attributes:
        gold: the label that the task's file calls right; None without one.
        answer: the likeliest label; None when mass outside the labels leads.
        correct: whether they agree; None when that cannot be said.
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
    more = _more(folder)
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
                crit_mean=_number(payload.get("crit_mean")),
                labels=tuple(case.get("labels") or ()),
                distribution=decoded(row["distribution"]) if row["distribution"] else None,
            )
        )
    return found


def _more(folder: str | Path) -> dict[tuple[str, int], tuple[dict[str, Any], dict[str, Any]]]:
    """By debate, the row and the payload of each verdict that is a consensus."""
    found = {}
    for row in read_table(folder, "verdicts", ["confidence", "distribution", "payload"]).to_pylist():
        payload = decoded(row["payload"])
        if payload.get("distribution_from") == "consensus":
            found[row["case_id"], row["attempt"]] = (row, payload)
    return found


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
