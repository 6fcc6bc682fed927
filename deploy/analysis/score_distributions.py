"""How the judges' scores lie: where nearly all are at the top, no feature can go far with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from moot.deploy.analysis.replies import FLAG, QUALITY, Replies, Stratum, numbers
from moot.deploy.analysis.table import Column, Table, Value
from moot.metrics.rank_correlation import spearman_ceiling
from moot.protocols.rubrics.mark_sheet import FLAG as FLAG_KEY

Floats = npt.NDArray[np.float64]

SHOWN = (
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


def score_distributions_table(replies: Replies, strata: Sequence[Stratum]) -> Table:
    """Each target's scores in each stratum, with the ceiling that their ties set on Spearman's rho."""
    return Table(
        name="score_distributions",
        title="Distributions of the judges' scores",
        rows=[row for stratum in strata for row in _rows(replies, stratum)],
        shown=SHOWN,
        notes=(
            "A reply passes a dimension when its mean score is at least what the rubric says passes, and it is not "
            "flagged; unknown where the rubric says nothing. `share at top`: replies to which every mark gives the "
            "highest score that there is; unknown for a table, which names no scale. `|rho| at most`: what a feature "
            "without ties could reach with scores tied like these.",
        ),
    )


def _rows(replies: Replies, stratum: Stratum) -> Iterator[dict[str, Value]]:
    flag = replies.flag[stratum.rows]
    for target, values in {**replies.ordinal, FLAG: replies.flag}.items():
        scores = values[stratum.rows]
        known = scores[np.isfinite(scores)]
        if not len(known):
            continue
        levels, counts = np.unique(known, return_counts=True)
        yield {
            "stratum": stratum.words,
            **stratum.keys,
            "target": target,
            "n": len(known),
            "missing": len(scores) - len(known),
            "mean": float(known.mean()),
            "distribution": _in_words(levels, counts),
            "at_top": _at_top(scores, _tops(replies, stratum, target)),
            "passed": None if target in (FLAG, QUALITY) else _passed(scores, flag, _bar(replies, stratum, target)),
            "ceiling": None if target == FLAG else float(spearman_ceiling(known)),
        }


def _tops(replies: Replies, stratum: Stratum, target: str) -> Floats:
    """By reply the highest score that there is, for Q their sum; NaN where the assessment does not say."""
    scales = [{} if each is None else each.ends for each in (replies.assessments[row] for row in stratum.rows)]
    if target != QUALITY:
        return numbers(ends[target][1] if target in ends else None for ends in scales)
    return numbers(sum(high for name, (_, high) in ends.items() if name != FLAG_KEY) or None for ends in scales)


def _at_top(scores: Floats, tops: Floats) -> float | None:
    """The share of the known scores that are the highest that could be given; unknown without a scale."""
    known = np.isfinite(scores) & np.isfinite(tops)
    return float((scores == tops)[known].mean()) if known.any() else None


def _bar(replies: Replies, stratum: Stratum, dimension: str) -> Floats:
    """By reply the lowest score that passes a dimension under the rubric that it was judged by; NaN where unknown."""
    found = [replies.assessments[row] for row in stratum.rows]
    return numbers(None if each is None else each.passes_at.get(dimension) for each in found)


def _passed(scores: Floats, flag: Floats, bar: Floats) -> float | None:
    known = np.isfinite(scores) & np.isfinite(bar)
    return float(((scores >= bar) & (flag != 1.0))[known].mean()) if known.any() else None


def _in_words(levels: Floats, counts: npt.NDArray[np.int64]) -> str:
    """Up to eight levels one by one, more as quartiles."""
    if len(levels) <= 8:
        return ", ".join(f"{level:g}: {count:,}" for level, count in zip(levels, counts, strict=True))
    quartiles = np.quantile(np.repeat(levels, counts), [0.0, 0.25, 0.5, 0.75, 1.0])
    return "quartiles " + ", ".join(f"{value:g}" for value in quartiles)
