"""Tables of the feature sweep: the best features of each target (the papers' Tables 1 to 4), by window, and all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from moot.deploy.results.analysis.replies import FLAG, ReplyFeatures
from moot.deploy.results.analysis.settings import AnalysisSettings
from moot.deploy.results.analysis.sweep import Sweep, feature_blocks, targets_by_features
from moot.deploy.results.analysis.table import AnalysisTable, Column, Value, with_interval
from moot.metrics.class_separation import folded_auroc
from moot.metrics.confidence_features import STATISTICS, WINDOWS, Feature
from moot.metrics.distribution import Floats
from moot.metrics.held_out import held_out_selection
from moot.metrics.rank_correlation import spearman_matrix

TOP = 3

TOP_FEATURES = (
    Column("stratum", "stratum"),
    Column("target", "target", short="target"),
    Column("rank", "#", digits=None),
    Column("feature_words", "feature", short="best feature"),
    Column("n", "n", digits=None),
    Column("rarer", "of the rarer class", digits=None),
    Column("value", "rho / AUROC", interval=True, short="value"),
    Column("second", "tau / PB"),
    Column("folded", "folded"),
    Column("direction", "direction", short="confident ->"),
    Column("q", "q", is_p=True),
    Column("max_p", "p, max", is_p=True, short="p, max"),
    Column("held_out", "held out", short="held out"),
    Column("length_value", "length"),
)


def top_features_table(measured: ReplyFeatures, sweeps: Sequence[Sweep], settings: AnalysisSettings) -> AnalysisTable:
    """Top three features for each stratum, target, signal and origin.

    A feature with the same ranking of the replies as a stronger one (the variance and the standard deviation, two
    windows with the same tokens) is excluded, as is a feature of fewer than `settings.least_n` replies.
    """
    rows = [row for each in sweeps for row in _rows(measured, each, settings)]
    # No interval in a terminal: it ignores the selection, and a terminal has room for one caveat only.
    terse = [{name: value for name, value in row.items() if name not in ("value_low", "value_high")} for row in rows]
    return AnalysisTable(
        name="top_features",
        title="Top features for each target",
        rows=rows,
        shown=TOP_FEATURES,
        terse=[row for row in terse if (row["rank"], row["signal"], row["origin"]) == (1, "logprob", "token 0")],
        notes=(
            "Spearman's rho; for the flag and for correct the AUROC, above .5 when a high value goes with yes.",
            "The best of many features is an optimistic figure. `held out`: the value, on held-out cases, of the "
            f"feature chosen on the others ({settings.folds} folds), in the direction found there; compare it with "
            "`folded`, the value in either direction, as the papers print it. `p, max` is the chance that the "
            "best of the sweep is this good when nothing is related.",
            "`length` is the value of the reply's length alone.",
        ),
    )


def _rows(measured: ReplyFeatures, sweep: Sweep, settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
    held_out = {
        (signal, origin): _held_out(measured, sweep, part, settings)
        for signal, origin, part in feature_blocks(sweep.features)
    }
    for t in range(len(sweep.targets)):
        for signal, origin, numbers in feature_blocks(sweep.features):
            for place, f in enumerate(_top(measured, sweep, numbers, t, settings), start=1):
                row = association(sweep, f, t)
                yield {
                    **row,
                    "rank": place,
                    "held_out": float(held_out[signal, origin][t]) if place == 1 else None,
                    "length_value": float(sweep.value[-1, t]),
                    "signal": signal,
                    "origin": origin,
                }


def _top(
    measured: ReplyFeatures, sweep: Sweep, numbers: npt.NDArray[np.int64], t: int, settings: AnalysisSettings
) -> list[int]:
    """Indices of the strongest features, without those that rank the replies as a stronger one does."""
    x = measured.x[sweep.stratum.rows]
    chosen: list[int] = []
    for f in _rank(sweep, numbers, t, settings):
        if len(chosen) == TOP:
            break
        known = np.isfinite(x[:, f])
        same = [g for g in chosen if (np.isfinite(x[:, g]) == known).all()]
        if not same or (np.abs(spearman_matrix(x[:, [f]], x[:, same])) < 1.0 - 1e-9).all():
            chosen.append(f)
    return chosen


def _rank(sweep: Sweep, numbers: npt.NDArray[np.int64], t: int, settings: AnalysisSettings) -> list[int]:
    """Indices of the features, the strongest first; ties in the features' order."""
    enough = sweep.enough(settings)[:, t] & np.isfinite(sweep.value[:, t])
    usable = [f for f in numbers.tolist() if may_rank(sweep.features[f]) and enough[f]]
    return sorted(usable, key=lambda f: -round(float(sweep.strength[f, t]), 12))


def may_rank(feature: Feature) -> bool:
    """Whether a feature is ranked; the variance is not, because it ranks replies as the standard deviation does."""
    return feature.statistic != "variance"


def _held_out(
    measured: ReplyFeatures, sweep: Sweep, numbers: npt.NDArray[np.int64], settings: AnalysisSettings
) -> Floats:
    """Held-out value for each target, shape `(T,)`; NaN where there are fewer cases than folds."""
    rows = sweep.stratum.rows
    targets = measured.replies.ordinal if sweep.kind == "spearman" else measured.replies.binary
    clusters = measured.replies.group[rows]
    found = np.full(len(sweep.targets), np.nan)
    if len(np.unique(clusters)) < settings.folds:
        return found
    ranked = numbers[[may_rank(sweep.features[f]) for f in numbers.tolist()]]
    for chosen, enough in targets_by_features(sweep.n[ranked] >= settings.least_n):
        found[chosen] = held_out_selection(
            measured.x[np.ix_(rows, ranked[enough])],
            np.column_stack([targets[sweep.targets[t]][rows] for t in chosen.tolist()]),
            clusters,
            folds=settings.folds,
            seed=settings.seed,
            statistic=sweep.kind,
        ).value
    return found


ABLATION = (
    Column("stratum", "stratum"),
    Column("target", "target"),
    Column("signal", "signal"),
    Column("origin", "from"),
    Column("part", "window or statistic"),
    Column("features", "features", digits=None),
    Column("median", "median strength"),
    Column("best", "best strength"),
    Column("best_feature", "best feature"),
)


def ablation_table(sweeps: Sequence[Sweep], settings: AnalysisSettings) -> AnalysisTable:
    """Ablation of the sweep: each window over all statistics, each statistic over all windows, by stratum and target.

    It covers the features with enough replies for a rank, and of a binary target enough of the rarer class.
    """
    return AnalysisTable(
        name="ablation",
        title="Which window, which statistic",
        rows=[row for sweep in sweeps for row in _ablation_rows(sweep, settings)],
        shown=ABLATION,
        notes=(
            "Strength: |rho|, or the AUROC's distance from one half. A best value is that of several, so optimistic.",
        ),
        in_files_only=True,
    )


def _ablation_rows(sweep: Sweep, settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
    enough = sweep.enough(settings)
    for t, target in enumerate(sweep.targets):
        for signal, origin, numbers in feature_blocks(sweep.features):
            for kind, names in (("window", WINDOWS), ("statistic", STATISTICS)):
                for name in names:
                    chosen = [f for f in numbers.tolist() if getattr(sweep.features[f], kind) == name]
                    usable = [
                        f
                        for f in chosen
                        if enough[f, t]
                        and np.isfinite(sweep.value[f, t])
                        and (kind == "statistic" or may_rank(sweep.features[f]))
                    ]
                    strengths = sweep.strength[usable, t]
                    best = usable[int(strengths.argmax())] if usable else None
                    yield {
                        **sweep.stratum.named,
                        "target": target,
                        "signal": signal,
                        "origin": origin,
                        "kind": kind,
                        "part": name,
                        "features": len(usable),
                        "median": float(np.median(strengths)) if usable else None,
                        "best": float(strengths.max()) if usable else None,
                        "best_feature": None if best is None else sweep.features[best].words,
                    }


LENGTH = "length"
"""Name of the baseline feature: the number of the reply's tokens."""

ASSOCIATIONS = (
    Column("stratum", "stratum"),
    Column("target", "target"),
    Column("feature_words", "feature"),
    Column("n", "n", digits=None),
    Column("rarer", "of the rarer class", digits=None),
    Column("value", "association", interval=True),
    Column("second", "tau / PB"),
    Column("p", "p", is_p=True),
    Column("q", "q", is_p=True),
    Column("max_p", "p, max", is_p=True),
    Column("direction", "direction"),
)


def associations_table(sweeps: Sequence[Sweep]) -> AnalysisTable:
    """Table of all associations of the sweep."""
    return AnalysisTable(
        name="associations",
        title="Every feature against every target",
        rows=[
            association(each, f, t)
            for each in sweeps
            for t in range(len(each.targets))
            for f in range(len(each.features) + 1)
        ],
        shown=ASSOCIATIONS,
        notes=(
            "Spearman's rho for scores, with Kendall's tau-b beside it; for yes/no targets the directed AUROC (above "
            ".5 when a high value goes with yes), with the point-biserial correlation beside it.",
            "Intervals: 95 %, cases resampled. p: cases permuted; q: Benjamini-Hochberg over the sweep; p, max: "
            "against the largest association of all features of the same signal and origin.",
        ),
        in_files_only=True,
    )


def association(sweep: Sweep, f: int, t: int) -> dict[str, Value]:
    """Row of the association of a feature and a target; the index after the last feature is the reply's length."""
    feature = sweep.features[f] if f < len(sweep.features) else None
    value = float(sweep.value[f, t])
    further = ("second", "given_length", "within_openings", "p", "q", "max_p")
    return {
        **sweep.stratum.named,
        "target": sweep.targets[t],
        "statistic": "Spearman's rho" if sweep.kind == "spearman" else "AUROC",
        "feature": feature.name if feature else LENGTH,
        "feature_words": feature.words if feature else "Length in tokens (baseline)",
        **{name: getattr(feature, name, None) for name in ("signal", "origin", "window")},
        "window_statistic": feature.statistic if feature else None,
        "n": int(sweep.n[f, t]),
        "rarer": int(sweep.rarer[f, t]),
        **with_interval("value", value, (float(sweep.low[f, t]), float(sweep.high[f, t]))),
        "folded": float(folded_auroc(value)) if sweep.kind == "auroc" else abs(value),
        **{name: float(getattr(sweep, name)[f, t]) for name in further},
        "exchangeable": float(sweep.movable[t]),
        "direction": direction(sweep, f, t),
    }


def direction(sweep: Sweep, f: int, t: int) -> str:
    """Direction of the association for a confident reply: more flags are worse, more of any other target is better.

    It is empty for a feature without orientation (a slope, the length) and without an association.
    """
    orientation = sweep.features[f].orientation if f < len(sweep.features) else 0
    deviation = float(sweep.value[f, t]) - (0.5 if sweep.kind == "auroc" else 0.0)
    sign = orientation * (1 if deviation > 0 else -1 if deviation < 0 else 0) * (-1 if sweep.targets[t] == FLAG else 1)
    return {1: "confident -> better", -1: "confident -> worse", 0: ""}[sign]
