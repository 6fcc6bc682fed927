"""How consistent the judges are: with each other, and each with itself over its passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

import numpy as np

from moot.deploy.analysis.replies import Replies, Stratum, numbers
from moot.deploy.analysis.table import Column, Table, Value
from moot.deploy.reading.detection.estimates import Estimate
from moot.deploy.reading.summaries.consistency import Agreement, judge_consistency
from moot.metrics.rank_correlation import spearman_matrix
from moot.protocols.rubrics.assessed import AssessmentData, MarkData
from moot.protocols.rubrics.mark_sheet import FLAG as FLAG_KEY

SHOWN = (
    Column("of", "raters"),
    Column("dimension", "dimension", short="dimension"),
    Column("n", "n", digits=None),
    Column("alpha", "Krippendorff's alpha", interval=True, short="alpha"),
    Column("ac2", "Gwet's AC2", interval=True, short="AC2"),
    Column("raw", "raw agreement", interval=True, short="raw"),
    Column("spearman", "mean rho"),
    Column("why", "remark"),
)


def consistency_table(replies: Replies, strata: Sequence[Stratum]) -> Table:
    """Agreement between judges and within each, for every dimension and the flag."""
    rows = [row for stratum in strata for row in _rows(replies, stratum)]
    return Table(
        name="judge_consistency",
        title="Consistency of the judges",
        rows=rows,
        shown=SHOWN,
        notes=(
            "Alpha: ordinal for dimensions, nominal for the flag; it collapses where nearly all scores are alike, so "
            "raw agreement and AC2 stand beside it.",
            "n: replies within a judge, replies times passes between judges. Mean rho: over pairs of raters.",
        ),
    )


def _rows(replies: Replies, stratum: Stratum) -> Iterator[dict[str, Value]]:
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
        yield _row(stratum, f"{len(judges)} judges", agreement, [list(chain.from_iterable(each)) for each in raters])
    for within in found.within:
        raters = [[marks[within.judge, number]] for number in passes if (within.judge, number) in marks]
        for agreement in within.rows:
            words = f"{within.judge} ({within.model}), {len(passes)} passes"
            yield _row(stratum, words, agreement, [list(chain.from_iterable(each)) for each in raters])


Marks = list[MarkData | None]


def _marks(assessments: Sequence[AssessmentData]) -> dict[tuple[str, int], Marks]:
    """By judge and pass, the mark of each reply."""
    found: dict[tuple[str, int], Marks] = {}
    for place, each in enumerate(assessments):
        for mark in each.judges:
            found.setdefault((mark.judge, mark.pass_index), [None] * len(assessments))[place] = mark
    return found


def _row(stratum: Stratum, raters: str, found: Agreement, marks: Sequence[Marks]) -> dict[str, Value]:
    row: dict[str, Value] = {
        "of": f"{stratum.words}: {raters}, n = {found.n:,}",
        "stratum": stratum.words,
        **stratum.keys,
        "raters": raters,
        "dimension": found.name,
        "n": found.n,
        "clusters": found.clusters,
    }
    for name in ("alpha", "ac2", "raw"):
        figure: Estimate = getattr(found, name)
        low, high = figure.interval or (None, None)
        row |= {name: figure.value, f"{name}_low": low, f"{name}_high": high}
    return row | {"spearman": _mean_rho(found.name, marks), "why": found.why}


def _mean_rho(dimension: str, marks: Sequence[Marks]) -> float | None:
    """Mean over the pairs of raters, as far as it is defined."""
    columns = [numbers(_score(dimension, mark) for mark in each) for each in marks]
    if len({len(column) for column in columns}) != 1:
        return None
    pairs = [float(spearman_matrix(a, b)[0, 0]) for a, b in combinations(columns, 2)]
    known = [value for value in pairs if not np.isnan(value)]
    return float(np.mean(known)) if known else None


def _score(dimension: str, mark: MarkData | None) -> float | None:
    if mark is None or mark.scores is None:
        return None
    score = mark.flag if dimension == FLAG_KEY else mark.scores.get(dimension)
    return None if score is None else float(score)
