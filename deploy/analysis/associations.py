"""The sweep as a table: one row for each stratum, target and feature, the reply's length among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moot.deploy.analysis.replies import FLAG
from moot.deploy.analysis.sweep import Sweep
from moot.deploy.analysis.table import Column, Table, Value
from moot.metrics.class_separation import folded_auroc

LENGTH = "length"
"""The baseline's name: the number of the reply's tokens."""

SHOWN = (
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


def associations_table(sweeps: Sequence[Sweep]) -> Table:
    """Every association of the sweep."""
    return Table(
        name="associations",
        title="Every feature against every target",
        rows=[row for each in sweeps for row in _rows(each)],
        shown=SHOWN,
        notes=(
            "Spearman's rho for scores, with Kendall's tau-b beside it; for yes/no targets the directed AUROC (above "
            ".5 when a high value goes with yes), with the point-biserial correlation beside it.",
            "Intervals: 95 %, cases resampled. p: cases permuted; q: Benjamini-Hochberg over the sweep; p, max: "
            "against the largest association of all features of the same signal and origin.",
        ),
        in_files_only=True,
    )


def _rows(sweep: Sweep) -> Iterator[dict[str, Value]]:
    for t in range(len(sweep.targets)):
        for f in range(len(sweep.features) + 1):
            yield association(sweep, f, t)


def association(sweep: Sweep, f: int, t: int) -> dict[str, Value]:
    """One feature (the number after the last is the length) and one target as a row."""
    feature = sweep.features[f] if f < len(sweep.features) else None
    value = float(sweep.value[f, t])
    return {
        "stratum": sweep.stratum.words,
        **sweep.stratum.keys,
        "target": sweep.targets[t],
        "statistic": "Spearman's rho" if sweep.kind == "spearman" else "AUROC",
        "feature": feature.name if feature else LENGTH,
        "feature_words": feature.words if feature else "Length in tokens (baseline)",
        "signal": feature.signal if feature else None,
        "origin": feature.origin if feature else None,
        "window": feature.window if feature else None,
        "window_statistic": feature.statistic if feature else None,
        "n": int(sweep.n[f, t]),
        "rarer": int(sweep.rarer[f, t]),
        "value": value,
        "value_low": float(sweep.low[f, t]),
        "value_high": float(sweep.high[f, t]),
        "folded": float(folded_auroc(value)) if sweep.kind == "auroc" else abs(value),
        "second": float(sweep.second[f, t]),
        "given_length": float(sweep.given_length[f, t]),
        "within_openings": float(sweep.within_openings[f, t]),
        "p": float(sweep.p[f, t]),
        "q": float(sweep.q[f, t]),
        "max_p": float(sweep.max_p[f, t]),
        "exchangeable": float(sweep.movable[t]),
        "direction": direction(sweep, f, t),
    }


def direction(sweep: Sweep, f: int, t: int) -> str:
    """Which way confidence points: more flags are worse, more of anything else is better.

    Empty for what has no orientation (a slope, the length) and for no association.
    """
    orientation = sweep.features[f].orientation if f < len(sweep.features) else 0
    lean = float(sweep.value[f, t]) - (0.5 if sweep.kind == "auroc" else 0.0)
    sign = orientation * (1 if lean > 0 else -1 if lean < 0 else 0) * (-1 if sweep.targets[t] == FLAG else 1)
    return {1: "confident -> better", -1: "confident -> worse", 0: ""}[sign]
