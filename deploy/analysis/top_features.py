"""The features that go best with each target: the papers' Tables 1 to 4, with what their best values are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from moot.deploy.analysis.associations import association
from moot.deploy.analysis.measured import Measured
from moot.deploy.analysis.settings import AnalysisSettings
from moot.deploy.analysis.sweep import Sweep
from moot.deploy.analysis.table import Column, Table, Value
from moot.metrics.confidence_features import Feature
from moot.metrics.held_out import held_out_selection

Floats = npt.NDArray[np.float64]

TOP = 3

SHOWN = (
    Column("stratum", "stratum"),
    Column("target", "target", short="target"),
    Column("rank", "#", digits=None),
    Column("feature_words", "feature", short="best feature"),
    Column("n", "n", digits=None),
    Column("value", "rho / AUROC", interval=True, short="value"),
    Column("second", "tau / PB"),
    Column("folded", "folded"),
    Column("direction", "direction", short="confident ->"),
    Column("q", "q", is_p=True),
    Column("max_p", "p, max", is_p=True, short="p, max"),
    Column("held_out", "held out", short="held out"),
    Column("length_value", "length"),
)


def top_features_table(measured: Measured, sweeps: Sequence[Sweep], settings: AnalysisSettings) -> Table:
    """The best three features for each stratum, target, signal and origin.

    Variance is left out beside the standard deviation, which has the same ranks; so are features that fewer than
    `settings.least_n` replies have.
    """
    rows = [row for each in sweeps for row in _rows(measured, each, settings)]
    return Table(
        name="top_features",
        title="Top features for each target",
        rows=rows,
        shown=SHOWN,
        terse=[_terse(row) for row in rows if (row["rank"], row["signal"], row["origin"]) == (1, "logprob", "token 0")],
        notes=(
            "Spearman's rho; for the flag and for correct the AUROC, above .5 when a high value goes with yes.",
            "The best of many features is an optimistic figure. `held out` is what the feature chosen on four fifths "
            "of the cases is worth on the last fifth, in the direction that it had there: compare it with `folded`, "
            "the value whichever way it points, as the papers print it. `p, max` is the chance that the best of the "
            "sweep is this good when nothing is related.",
            "`length` is what the reply's length alone gives.",
        ),
    )


def _rows(measured: Measured, sweep: Sweep, settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
    held_out = {(signal, origin): _held_out(measured, sweep, part, settings) for signal, origin, part in sweep.blocks()}
    for t in range(len(sweep.targets)):
        for signal, origin, numbers in sweep.blocks():
            ranked = rank(sweep, numbers, t, settings.least_n)
            for place, f in enumerate(ranked[:TOP].tolist(), start=1):
                row = association(sweep, f, t)
                yield {
                    **row,
                    "rank": place,
                    "held_out": float(held_out[signal, origin][t]) if place == 1 else None,
                    "length_value": float(sweep.value[-1, t]),
                    "signal": signal,
                    "origin": origin,
                }


def _terse(row: dict[str, Value]) -> dict[str, Value]:
    """Without the interval: it knows nothing of the choice, and a terminal has room for one reservation only."""
    return {name: value for name, value in row.items() if name not in ("value_low", "value_high")}


def rank(sweep: Sweep, numbers: npt.NDArray[np.int64], t: int, least_n: int) -> npt.NDArray[np.int64]:
    """Numbers of the features, the strongest first; ties in the features' order."""
    usable = [
        f
        for f in numbers.tolist()
        if may_rank(sweep.features[f]) and sweep.n[f, t] >= least_n and np.isfinite(sweep.value[f, t])
    ]
    return np.array(sorted(usable, key=lambda f: -round(float(sweep.strength[f, t]), 12)), np.int64)


def may_rank(feature: Feature) -> bool:
    """Whether a feature stands in rankings: the variance orders replies as the standard deviation does."""
    return feature.statistic != "variance"


def _held_out(measured: Measured, sweep: Sweep, numbers: npt.NDArray[np.int64], settings: AnalysisSettings) -> Floats:
    """For each target; NaN where there are too few cases for folds."""
    rows = sweep.stratum.rows
    targets = measured.replies.ordinal if sweep.kind == "spearman" else measured.replies.binary
    usable = [f for f in numbers.tolist() if may_rank(sweep.features[f]) and sweep.n[f].min() >= settings.least_n]
    clusters = measured.replies.group[rows]
    if len(np.unique(clusters)) < settings.folds:
        return np.full(len(sweep.targets), np.nan)
    found = held_out_selection(
        measured.x[np.ix_(rows, usable)],
        np.column_stack([targets[name][rows] for name in sweep.targets]),
        clusters,
        folds=settings.folds,
        seed=settings.seed,
        statistic=sweep.kind,
    )
    return found.value
