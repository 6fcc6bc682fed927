"""Agreement between and within judges, and the distributions of their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt

from moot.deploy.results.figures.judged_replies import FLAG, QUALITY, Replies, Stratum, numbers
from moot.deploy.results.figures.judges import Agreement, judge_consistency
from moot.deploy.results.figures.token_confidence import AnalysisTable, Column, Value, with_interval
from moot.deploy.results.stats import IntervalEstimate
from moot.metrics.distribution import Floats
from moot.metrics.rank_correlation import spearman_ceiling, spearman_matrix
from moot.protocols.rubrics.events import JudgeMark, ReplyAssessed
from moot.protocols.rubrics.score_sheet import FLAG as FLAG_KEY

CONSISTENCY = (
    Column("of", "raters"),
    Column("dimension", "dimension", short="dimension"),
    Column("n", "n", digits=None),
    Column("alpha", "Krippendorff's alpha", interval=True, short="alpha"),
    Column("ac2", "Gwet's AC2", interval=True, short="AC2"),
    Column("raw", "raw agreement", interval=True, short="raw"),
    Column("spearman", "mean rho"),
    Column("why", "remark"),
)


def consistency_table(replies: Replies, strata: Sequence[Stratum]) -> AnalysisTable:
    """Table of inter-judge and intra-judge agreement, for every dimension and the flag."""
    rows = [row for stratum in strata for row in _consistency(replies, stratum)]
    return AnalysisTable(
        name="judge_consistency",
        title="Consistency of the judges",
        rows=rows,
        shown=CONSISTENCY,
        notes=(
            "Alpha: ordinal for dimensions, nominal for the flag; it is near 0 where nearly all scores are equal, so "
            "raw agreement and AC2 are shown beside it.",
            "n: replies within a judge, replies times passes between judges. Mean rho: over pairs of raters.",
        ),
    )


def _consistency(replies: Replies, stratum: Stratum) -> Iterator[dict[str, Value]]:
    chosen = [row for row in stratum.rows.tolist() if replies.assessments[row] is not None]
    if not chosen:
        return
    assessments = [each for row in chosen if (each := replies.assessments[row]) is not None]
    found = judge_consistency(assessments, replies.group[chosen].tolist())
    marks = _marks(assessments)
    judges = sorted({judge for judge, _ in marks})
    passes = sorted({number for _, number in marks})
    for agreement in found.between:
        raters = [[marks[judge, number] for number in passes if (judge, number) in marks] for judge in judges]
        yield _agreement(stratum, f"{len(judges)} judges", agreement, raters)
    for within in found.within:
        raters = [[marks[within.judge, number]] for number in passes if (within.judge, number) in marks]
        for agreement in within.rows:
            yield _agreement(stratum, f"{within.judge} ({within.model}), {len(passes)} passes", agreement, raters)


Marks = list[JudgeMark | None]


def _marks(assessments: Sequence[ReplyAssessed]) -> dict[tuple[str, int], Marks]:
    """Marks by judge and pass, one for each assessment; None where it has none."""
    found: dict[tuple[str, int], Marks] = {}
    for place, each in enumerate(assessments):
        for mark in each.judges:
            found.setdefault((mark.judge, mark.pass_index), [None] * len(assessments))[place] = mark
    return found


def _agreement(
    stratum: Stratum, raters: str, found: Agreement, of_raters: Sequence[Sequence[Marks]]
) -> dict[str, Value]:
    row: dict[str, Value] = {
        "of": f"{stratum.words}: {raters}, n = {found.n:,}",
        **stratum.named,
        "raters": raters,
        "dimension": found.name,
        "n": found.n,
        "clusters": found.clusters,
    }
    for name in ("alpha", "ac2", "raw"):
        figure: IntervalEstimate = getattr(found, name)
        row |= with_interval(name, figure.value, figure.interval or (None, None))
    marks = [list(chain.from_iterable(each)) for each in of_raters]
    return row | {"spearman": _mean_rho(found.name, marks), "why": found.why}


def _mean_rho(dimension: str, marks: Sequence[Marks]) -> float | None:
    """Mean Spearman's rho over the pairs of raters for which it is defined."""
    columns = [numbers(_score(dimension, mark) for mark in each) for each in marks]
    if len({len(column) for column in columns}) != 1:
        return None
    pairs = [float(spearman_matrix(a, b)[0, 0]) for a, b in combinations(columns, 2)]
    known = [value for value in pairs if not np.isnan(value)]
    return float(np.mean(known)) if known else None


def _score(dimension: str, mark: JudgeMark | None) -> float | None:
    if mark is None or mark.scores is None:
        return None
    score = mark.flag if dimension == FLAG_KEY else mark.scores.get(dimension)
    return None if score is None else float(score)


DISTRIBUTIONS = (
    Column("stratum", "stratum"),
    Column("target", "target", short="target"),
    Column("n", "n", digits=None, short="n"),
    Column("missing", "missing", digits=None, short="missing"),
    Column("mean", "mean", digits=2, short="mean"),
    Column("distribution", "score: replies"),
    Column("at_top", "share at top", short="top"),
    Column("passed", "passed", short="passed"),
    Column("ceiling", "|rho| at most", short="max rho"),
)


def score_distributions_table(replies: Replies, strata: Sequence[Stratum]) -> AnalysisTable:
    """Table of score distributions by target and stratum, with the largest |rho| that their ties permit."""
    return AnalysisTable(
        name="score_distributions",
        title="Distributions of the judges' scores",
        rows=[row for stratum in strata for row in _distributions(replies, stratum)],
        shown=DISTRIBUTIONS,
        notes=(
            "A reply passes a dimension when its mean score is at least the rubric's passing score, and it is not "
            "flagged; unknown where the rubric has none. `share at top`: replies to which every mark gives the "
            "highest possible score; unknown for a table, which states no scale. `|rho| at most`: the largest value "
            "for a feature without ties, given the ties of the scores.",
        ),
    )


def _distributions(replies: Replies, stratum: Stratum) -> Iterator[dict[str, Value]]:
    flag = replies.flag[stratum.rows]
    for target, values in {**replies.ordinal, FLAG: replies.flag}.items():
        scores = values[stratum.rows]
        known = scores[np.isfinite(scores)]
        if not len(known):
            continue
        levels, counts = np.unique(known, return_counts=True)
        tops = _tops(replies, stratum, target)
        # The passing score is that of the rubric under which each reply was judged.
        judged = [replies.assessments[row] for row in stratum.rows]
        passing = numbers(None if each is None else each.passes_at.get(target) for each in judged)
        yield {
            **stratum.named,
            "target": target,
            "n": len(known),
            "missing": len(scores) - len(known),
            "mean": float(known.mean()),
            "distribution": _in_words(levels, counts),
            "at_top": _share(scores == tops, scores, tops),
            "passed": None
            if target in (FLAG, QUALITY)
            else _share((scores >= passing) & (flag != 1.0), scores, passing),
            "ceiling": None if target == FLAG else float(spearman_ceiling(known)),
        }


def _tops(replies: Replies, stratum: Stratum, target: str) -> Floats:
    """Highest possible score of each reply, for Q the sum over the dimensions; NaN where it is unknown."""
    scales = [{} if each is None else each.ends for each in (replies.assessments[row] for row in stratum.rows)]
    if target != QUALITY:
        return numbers(ends[target][1] if target in ends else None for ends in scales)
    return numbers(sum(high for name, (_, high) in ends.items() if name != FLAG_KEY) or None for ends in scales)


def _share(is_met: npt.NDArray[np.bool_], scores: Floats, bounds: Floats) -> float | None:
    """Share of true values among the known scores with a known bound; None without any."""
    known = np.isfinite(scores) & np.isfinite(bounds)
    return float(is_met[known].mean()) if known.any() else None


def _in_words(levels: Floats, counts: npt.NDArray[np.int64]) -> str:
    """Distribution as text: counts of at most eight levels, else quartiles."""
    if len(levels) <= 8:
        return ", ".join(f"{level:g}: {count:,}" for level, count in zip(levels, counts, strict=True))
    quartiles = np.quantile(np.repeat(levels, counts), [0.0, 0.25, 0.5, 0.75, 1.0])
    return "quartiles " + ", ".join(f"{value:g}" for value in quartiles)
