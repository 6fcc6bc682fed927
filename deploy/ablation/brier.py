"""How good the cells' distributions are: the multi-class Brier score of each case, and what the baseline's are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pydantic import BaseModel, ConfigDict

from moot.actors.record.tables import read_table
from moot.deploy.ablation.cases import CellCases, adjusted, bca, known
from moot.deploy.reading.record import decoded
from moot.deploy.reading.summaries.consensus import Held, hold_against
from moot.deploy.reading.text import Interval
from moot.metrics.significance import cliffs_delta_per_case, wilcoxon_signed_rank

VOTES = "shares of votes"
"""Why a verdict's distribution has no Brier score: nobody stated it."""

_DIGITS = 12
"""Of a score: the rounding of shares must not make a difference between two cells."""


@dataclass(frozen=True)
class CellScores:
    """A cell's Brier scores.

    Attributes:
        scores: by case id, in order of the ids, so that nothing drawn over them depends on the record's order.
        left_out: verdicts without a score, by reason: see `moot.deploy.reading.summaries.consensus`, `failed`,
            `shares of votes`, which nobody stated as probabilities and no judging moves, and `trained on`, for claims
            that the run's classifier knows.
    """

    scores: Mapping[str, float]
    left_out: Mapping[str, int]


class BrierAgainst(BaseModel):
    """A cell's scores (first) against the baseline's (second), on the cases that have both.

    Attributes:
        difference: of the means; negative is better.
        p_value: two-sided, of Wilcoxon's signed-rank test on the cases' scores; `p_adjusted` after Benjamini and
            Hochberg, over all cells that are compared.
        cliffs_delta: within cases, in [-1, 1]: share of them with a higher score than the baseline's minus share with
            a lower one.
        n: cases.
    """

    model_config = ConfigDict(frozen=True)

    difference: float
    p_value: float | None
    p_adjusted: float | None
    cliffs_delta: float | None
    n: int


class Brier(BaseModel):
    """A cell's mean Brier score, multi-class: 0 for certain and right, 2 for certain and wrong.

    Attributes:
        interval: BCa bootstrap over the cases, 95 %.
        n: cases whose verdict has a distribution, and whose truth is known.
        vs_baseline: None for the baseline itself, and without a common case.
    """

    model_config = ConfigDict(frozen=True)

    mean: float
    interval: Interval | None
    n: int
    vs_baseline: BrierAgainst | None


def case_scores(folder: str | Path, cell: CellCases) -> CellScores:
    """The Brier score of each case that has one, and how many have none.

    Raises:
        RecordError: the record cannot be read.
    """
    rows = read_table(folder, "verdicts", ["distribution", "payload"]).to_pylist()
    given = {(row["case_id"], row["attempt"]): decoded(row["distribution"]) for row in rows}
    votes = {(row["case_id"], row["attempt"]) for row in rows if _is_vote(row["payload"])}
    scores, left_out = {}, Counter[str]()
    for case_id, verdict in sorted(cell.verdicts.items()):
        if verdict.failed:
            left_out["failed"] += 1
            continue
        if verdict.key in votes:
            left_out[VOTES] += 1
            continue
        held = hold_against(given.get(verdict.key), cell.labels.get(case_id, ()), verdict.gold)
        if isinstance(held, Held) and case_id in cell.trained_on:
            left_out["trained on"] += 1
        elif isinstance(held, Held):
            scores[case_id] = round(held.brier, _DIGITS)
        else:
            left_out[held] += 1
    return CellScores(scores, dict(sorted(left_out.items())))


def _is_vote(payload: str | None) -> bool:
    return decoded(payload).get("distribution_from") == "votes"


def brier_figures(scores: Mapping[str, Mapping[str, float]], baseline: str) -> dict[str, Brier]:
    """Every cell's mean and its comparison with the baseline.

    Args:
        scores: by cell, the score of each case, in order of the cases' ids.
        baseline: a cell's name.
    """
    against = _against(scores, baseline)
    return {
        name: Brier(
            mean=fmean(each.values()),
            interval=bca(list(each.values())),
            n=len(each),
            vs_baseline=against.get(name),
        )
        for name, each in scores.items()
        if each
    }


def _against(scores: Mapping[str, Mapping[str, float]], baseline: str) -> dict[str, BrierAgainst]:
    base, found = scores.get(baseline, {}), {}
    for name, each in scores.items():
        shared = sorted(each.keys() & base.keys())
        if name != baseline and shared:
            found[name] = _compared([each[i] for i in shared], [base[i] for i in shared])
    adjustments = adjusted([each.p_value for each in found.values()])
    return {
        name: each.model_copy(update={"p_adjusted": p})
        for (name, each), p in zip(found.items(), adjustments, strict=True)
    }


def _compared(own: list[float], base: list[float]) -> BrierAgainst:
    return BrierAgainst(
        difference=fmean(own) - fmean(base),
        p_value=known(wilcoxon_signed_rank(own, base).p_value),
        p_adjusted=None,
        cliffs_delta=known(cliffs_delta_per_case(own, base)),
        n=len(own),
    )
