"""Inter-judge and intra-judge agreement, from the events `assessment`.

Krippendorff's alpha is near 0 where nearly all ratings are on one level, even if the raw agreement is high. Raw
agreement and Gwet's AC2 are therefore always reported beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.estimates import IntervalEstimate, with_ends
from moot.deploy.results.text import natural_sort_key
from moot.metrics.agreement import (
    Level,
    Weights,
    ac2_interval,
    alpha_interval,
    gwet_ac2,
    krippendorff_alpha,
    raw_agreement,
    raw_agreement_interval,
)
from moot.metrics.distribution import Floats
from moot.protocols.rubrics.events import JudgeMark, ReplyAssessed
from moot.protocols.rubrics.score_sheet import FLAG

FEWEST_UNITS = 2
"""Units with at least two ratings below which no agreement is computed."""


class Agreement(FrozenModel):
    """Agreement of raters on one dimension, or on the flag.

    Attributes:
        name: the dimension's name, or `critical_flag`.
        raters: judges, or passes.
        n: units with at least two ratings: replies within a judge, replies times passes between judges.
        clusters: number of independent cases (or groups of cases) with these units.
        alpha: Krippendorff's alpha, ordinal for a dimension and nominal for the flag; at most 1, 0 for chance.
        raw: raw agreement, the share of equal pairs of ratings, in [0, 1].
        ac2: Gwet's AC2 with ordinal weights; AC1 for the flag.
        why: the reason why alpha is unknown; empty when it is known.
    """

    name: str
    raters: int
    n: int
    clusters: int
    alpha: IntervalEstimate
    raw: IntervalEstimate
    ac2: IntervalEstimate
    why: str


class WithinJudge(FrozenModel):
    """Intra-judge agreement: one judge's agreement with itself over its passes."""

    judge: str
    model: str
    rows: list[Agreement]


class Consistency(FrozenModel):
    """Agreement between and within the judges of a panel.

    Attributes:
        between: inter-judge agreement by dimension, then on the flag; empty with a single judge. Passes of the same
            number are compared.
        within: intra-judge agreement by judge; empty with a single pass.
    """

    between: list[Agreement]
    within: list[WithinJudge]


def judge_consistency(read: Sequence[ReplyAssessed], clusters: Sequence[str | int]) -> Consistency:
    """Agreement between and within judges, from the events `assessment`.

    Args:
        read: the events.
        clusters: the cluster of each event: its case, or its case's group.

    Raises:
        ValueError: the numbers of clusters and assessments differ.
    """
    if len(read) != len(clusters):
        raise ValueError(f"{len(read)} assessments but {len(clusters)} clusters")
    _, numbers = np.unique(np.array([str(cluster) for cluster in clusters]), return_inverse=True)
    marks = {(i, mark.judge, mark.pass_index): mark for i, each in enumerate(read) for mark in each.judges}
    judges = sorted({judge for _, judge, _ in marks}, key=natural_sort_key)
    passes = sorted({number for _, _, number in marks})
    scales = _scales(read)
    between, within = list[Agreement](), list[WithinJudge]()
    if len(judges) > 1:
        units = [(i, number) for i in range(len(read)) for number in passes]
        table = [[marks.get((i, judge, number)) for i, number in units] for judge in judges]
        between = _agreements(table, scales, numbers[[i for i, _ in units]])
    for judge in judges:
        table = [[marks.get((i, judge, number)) for i in range(len(read))] for number in passes]
        model = next((mark.model for row in table for mark in row if mark is not None and mark.model), "")
        if len(passes) > 1:
            within.append(WithinJudge(judge=judge, model=model, rows=_agreements(table, scales, numbers)))
    return Consistency(between=between, within=within)


def _scales(read: Sequence[ReplyAssessed]) -> dict[str, tuple[int, int]]:
    """Lowest and highest score by dimension and of the flag: the stated ends, and the scores that occur."""
    seen: dict[str, list[int]] = defaultdict(list)
    for each in read:
        for name, ends in each.ends.items():
            seen[name] += ends
        for mark in each.judges:
            for name, score in (mark.scores or {}).items():
                seen[name].append(score)
            if mark.flag is not None and not each.scales:
                seen[FLAG] += (0, 1)
    scales = {name: (min(scores), max(scores)) for name, scores in seen.items()}
    flag = {FLAG: scales.pop(FLAG)} if FLAG in scales else {}
    return scales | flag


def _agreements(
    table: Sequence[Sequence[JudgeMark | None]], scales: Mapping[str, tuple[int, int]], clusters: npt.NDArray[Any]
) -> list[Agreement]:
    """Agreement by dimension, then on the flag; `table` has the marks by rater and unit."""
    found = []
    for name, (lowest, highest) in scales.items():
        ratings = np.array([[_rating(mark, name) for mark in row] for row in table], dtype=np.float64)
        found.append(_agreement(name, ratings, range(lowest, highest + 1), clusters))
    return found


def _rating(mark: JudgeMark | None, name: str) -> float:
    if mark is None or mark.scores is None:
        return np.nan
    if name == FLAG:
        return np.nan if mark.flag is None else float(mark.flag)
    return float(mark.scores.get(name, np.nan))


def _agreement(name: str, ratings: Floats, levels: Sequence[int], clusters: npt.NDArray[Any]) -> Agreement:
    pairable = (~np.isnan(ratings)).sum(axis=0) >= 2
    ratings, clusters = ratings[:, pairable], clusters[pairable]
    n, independent = int(pairable.sum()), len(np.unique(clusters))
    made = partial(Agreement, name=name, raters=len(ratings), n=n, clusters=independent)
    unknown = IntervalEstimate()
    if n < FEWEST_UNITS:
        return made(alpha=unknown, raw=unknown, ac2=unknown, why=f"fewer than {FEWEST_UNITS} to compare")
    level: Level = "nominal" if name == FLAG else "ordinal"
    weights: Weights = "identity" if name == FLAG else "ordinal"
    categories = [float(each) for each in levels]
    alpha = krippendorff_alpha(ratings, level)
    ac2 = unknown
    if len(categories) > 1:
        ac2 = with_ends(gwet_ac2(ratings, categories, weights), *ac2_interval(ratings, categories, weights, clusters))
    return made(
        alpha=with_ends(alpha, *alpha_interval(ratings, level, clusters)),
        raw=with_ends(raw_agreement(ratings), *raw_agreement_interval(ratings, clusters)),
        ac2=ac2,
        why="all ratings on one level" if isnan(alpha) else "",
    )
