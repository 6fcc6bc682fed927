"""Judged quality, token confidence and correctness in pairs ("The Confident Liar", section 3.6.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from moot.deploy.analysis.replies import Measured, Stratum
from moot.deploy.analysis.settings import AnalysisSettings
from moot.deploy.analysis.table import Column, Table, Value, with_ends
from moot.metrics.cluster_bootstrap import (
    cluster_weights,
    interval_from,
    p_value_from,
    resampled_pearson,
    resampled_spearman,
)
from moot.metrics.cluster_permutation import permutation_test
from moot.metrics.distribution import Floats
from moot.metrics.rank_correlation import pearson_matrix, spearman_matrix
from moot.metrics.significance import benjamini_hochberg

SHOWN = (
    Column("stratum", "stratum"),
    Column("pair", "pair", short="pair"),
    Column("n", "n", digits=None, short="n"),
    Column("pearson", "Pearson", interval=True, short="Pearson"),
    Column("pearson_q", "q", is_p=True),
    Column("spearman", "Spearman", interval=True, short="Spearman"),
    Column("p", "p", is_p=True, short="p"),
    Column("q", "q", is_p=True),
)


def signal_pairs_table(measured: Measured, strata: Sequence[Stratum], settings: AnalysisSettings) -> Table:
    """Q with mu and sigma, correctness with Q and mu, and each of them with the reply's length."""
    return Table(
        name="signal_pairs",
        title="Judged quality, confidence and correctness in pairs",
        rows=_with_q([row for stratum in strata for row in _rows(measured, stratum, settings)]),
        shown=SHOWN,
        notes=(
            "mu and sigma: mean and standard deviation of the whole reply's log-probabilities. Intervals: 95 %, cases "
            "resampled; p: of Spearman's rho, cases permuted; of Pearson's, from its resamples; q: Benjamini-Hochberg "
            "over this table. A dash: undefined, as one of the two does not vary, or too few replies have both.",
        ),
    )


def _rows(measured: Measured, stratum: Stratum, settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
    replies = measured.replies
    signals = {
        "Q": replies.quality,
        "mu": measured.mu,
        "sigma": measured.sigma,
        "correct": replies.correct,
        "length": measured.length,
    }
    pairs = [("Q", "mu"), ("Q", "sigma"), ("correct", "Q"), ("correct", "mu"), ("Q", "length"), ("correct", "length")]
    for first, second in pairs:
        a, b = (signals[name][stratum.rows] for name in (first, second))
        both = np.isfinite(a) & np.isfinite(b)
        if not both.any():
            continue
        row: dict[str, Value] = {**stratum.named, "pair": f"({first}, {second})"}
        where = stratum.rows[both]
        yield row | _pair(a[both], b[both], replies.group[where], replies.slot[where].astype(str), settings)


def _with_q(rows: list[dict[str, Value]]) -> list[dict[str, Value]]:
    """Each p-value with what Benjamini and Hochberg's method makes of it."""
    for name in ("p", "pearson_p"):
        found = benjamini_hochberg([p if isinstance(p := row[name], float) else None for row in rows])
        for row, q in zip(rows, found.tolist(), strict=True):
            row[f"{name[:-1]}q"] = q
    return rows


def _pair(
    a: Floats, b: Floats, clusters: npt.NDArray[np.int64], slots: npt.NDArray[np.str_], settings: AnalysisSettings
) -> dict[str, Value]:
    columns = a[:, np.newaxis], b[:, np.newaxis]
    pearson, spearman = pearson_matrix(*columns).item(), spearman_matrix(*columns).item()
    found: dict[str, Value] = {"n": len(a)}
    if len(a) < settings.too_few or np.isnan(spearman):
        unknown = {"p": None, "pearson_p": None}
        return found | _figure("pearson", pearson, None) | _figure("spearman", spearman, None) | unknown
    draws = cluster_weights(clusters, settings.resamples, settings.seed)
    resampled = resampled_pearson(a, b, draws)
    found |= _figure("pearson", pearson, resampled) | {"pearson_p": float(p_value_from(resampled, pearson))}
    found |= _figure("spearman", spearman, resampled_spearman(*columns, draws)[:, 0, 0])
    tested = permutation_test(*columns, clusters, settings.permutations, settings.seed, slots=slots)
    return found | {"p": tested.p_value.item()}


def _figure(name: str, value: float, resampled: Floats | None) -> dict[str, Value]:
    return with_ends(name, value, *([] if resampled is None else [[*map(float, interval_from(resampled, value))]]))
