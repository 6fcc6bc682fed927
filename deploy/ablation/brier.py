"""How good the cells' distributions are: the multi-class Brier score of each case, and what the baseline's are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import msgspec
from pydantic import BaseModel, ConfigDict

from moot.actors.record.tables import read_table
from moot.deploy.ablation.cases import CellCases
from moot.deploy.ablation.inference import adjusted, bca, known
from moot.deploy.reading.text import Interval
from moot.metrics.brier import brier_multiclass
from moot.metrics.paired_tests import cliffs_delta_per_case, wilcoxon_signed_rank
from moot.protocols.labels import fold

_DIGITS = 12
"""Of a score: the order in which shares are added up must not make a difference between two cells."""


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


def case_scores(folder: str | Path, cell: CellCases) -> dict[str, float]:
    """The Brier score of each case that has one.

    Raises:
        RecordError: the record cannot be read.
    """
    scores = {}
    for row in read_table(folder, "verdicts", ["distribution"]).to_pylist():
        verdict = cell.verdicts.get(row["case_id"])
        if verdict is None or verdict.attempt != row["attempt"] or verdict.failed or verdict.gold is None:
            continue
        score = _score(msgspec.json.decode(row["distribution"]) if row["distribution"] else {}, verdict.gold)
        if score is not None:
            scores[row["case_id"]] = score
    return scores


def _score(distribution: Mapping[str, float | None], gold: str) -> float | None:
    """None for what is no distribution; a truth that it does not name has the probability 0 in it."""
    shares = {fold(label): share for label, share in distribution.items() if share is not None}
    if not shares or len(shares) < len(distribution):
        return None
    truth = fold(gold)
    shares.setdefault(truth, 0.0)
    score = float(brier_multiclass(list(shares.values()), list(shares).index(truth)))
    return known(round(score, _DIGITS))


def brier_figures(scores: Mapping[str, Mapping[str, float]], baseline: str) -> dict[str, Brier]:
    """Every cell's mean and its comparison with the baseline.

    Args:
        scores: by cell, the score of each case.
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
