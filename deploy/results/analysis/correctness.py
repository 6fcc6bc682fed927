"""Correlations of judged quality, confidence and correctness ("The Confident Liar", section 3.6.1).

Nested logistic regressions test whether confidence features predict a right answer, and whether the slope adds to the
mean (RQ 1.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from moot.deploy.results.analysis.replies import Replies, ReplyFeatures, Stratum
from moot.deploy.results.analysis.settings import AnalysisSettings
from moot.deploy.results.analysis.table import AnalysisTable, Column, Value, with_interval
from moot.deploy.results.detection.estimates import IntervalEstimate, coefficient, mean_estimate
from moot.deploy.results.text import finite_or_none
from moot.metrics.brier import brier_stated
from moot.metrics.cluster_bootstrap import resampled_spearman
from moot.metrics.cluster_permutation import permutation_test
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import left_out_weights
from moot.metrics.nested_models import nested_comparison
from moot.metrics.pearson_test import pearson_test
from moot.metrics.rank_correlation import pearson_matrix, spearman_matrix
from moot.metrics.significance import benjamini_hochberg

PAIRS = (
    Column("stratum", "stratum"),
    Column("pair", "pair", short="pair"),
    Column("n", "n", digits=None, short="n"),
    Column("pearson", "Pearson", interval=True, short="Pearson"),
    Column("pearson_q", "q", is_p=True),
    Column("spearman", "Spearman", interval=True, short="Spearman"),
    Column("p", "p", is_p=True, short="p"),
    Column("q", "q", is_p=True),
)


def signal_pairs_table(measured: ReplyFeatures, strata: Sequence[Stratum], settings: AnalysisSettings) -> AnalysisTable:
    """Table of correlations: Q with mu and sigma, correctness with Q and mu, Q and correctness with the length."""
    return AnalysisTable(
        name="signal_pairs",
        title="Judged quality, confidence and correctness in pairs",
        rows=_with_q([row for stratum in strata for row in _pair_rows(measured, stratum, settings)]),
        shown=PAIRS,
        notes=(
            "mu and sigma: mean and standard deviation of the whole reply's log-probabilities. Intervals: 95 %, over "
            "cases; p: of Spearman's rho, cases permuted; of Pearson's, Student's t over cases; q: Benjamini-Hochberg "
            "over this table. A dash: undefined, because one of the two does not vary, or too few replies have both. "
            "There are no intervals where nearly all replies are right, or wrong.",
        ),
    )


def _pair_rows(measured: ReplyFeatures, stratum: Stratum, settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
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
        known = stratum.rows[both]
        yield row | _pair(a[both], b[both], replies.group[known], replies.slot[known].astype(str), settings)


def _with_q(rows: list[dict[str, Value]]) -> list[dict[str, Value]]:
    """Rows with a Benjamini-Hochberg q-value added for each p-value."""
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
    found: dict[str, Value] = {"n": len(a), "p": None, "pearson_p": None}
    found |= with_interval("pearson", pearson) | with_interval("spearman", spearman)
    if len(a) < settings.too_few or np.isnan(spearman):
        return found
    if min(map(_rarer, columns)) >= settings.least_class:
        linear = pearson_test(b, a, clusters)
        left_out = resampled_spearman(*columns, left_out_weights(clusters))[:, 0, 0]
        ranked = coefficient(spearman, left_out, lowest=-1.0).interval or (None, None)
        found |= with_interval("pearson", pearson, (linear.low, linear.high)) | {"pearson_p": linear.p_value}
        found |= with_interval("spearman", spearman, ranked)
    tested = permutation_test(*columns, clusters, settings.permutations, settings.seed, slots=slots)
    return found | {"p": tested.p_value.item()}


def _rarer(values: Floats) -> int:
    """Number of replies of the rarer value of a yes/no signal; of others all.

    The standard error of a class of few replies is far too small, or large, by chance.
    """
    _, counts = np.unique(values, return_counts=True)
    return int(counts.min()) if len(counts) == 2 else len(values)


def quality_and_confidence(
    measured: ReplyFeatures, stratum: Stratum, settings: AnalysisSettings
) -> tuple[IntervalEstimate, int]:
    """Spearman's rho of Q with mu, and the number of replies, as in `signal_pairs_table`, without its test."""
    a, b = measured.replies.quality[stratum.rows], measured.mu[stratum.rows]
    both = np.isfinite(a) & np.isfinite(b)
    columns = a[both][:, np.newaxis], b[both][:, np.newaxis]
    rho, n = finite_or_none(spearman_matrix(*columns).item()) if both.any() else None, int(both.sum())
    if rho is None or n < settings.too_few:
        return IntervalEstimate(value=rho), n
    kept = left_out_weights(measured.replies.group[stratum.rows[both]])
    return coefficient(rho, resampled_spearman(*columns, kept)[:, 0, 0], lowest=-1.0), n


FEATURES = ("full.mean", "full.std", "full.slope", "first-10.mean", "first-3.range", "last-10.mean", "full.min")
"""Predictors from the log-probabilities; specified in advance, few enough for a small run."""

SHOWN = (
    Column("stratum", "stratum"),
    Column("question", "question", short="question"),
    Column("model_of", "model", short="model"),
    Column("n", "n", digits=None, short="n"),
    Column("auroc", "AUROC", short="AUROC"),
    Column("brier", "Brier"),
    Column("log_loss", "log-loss"),
    Column("gain", "gain over the row above", interval=True, short="gain"),
)


def correctness_table(measured: ReplyFeatures, strata: Sequence[Stratum], settings: AnalysisSettings) -> AnalysisTable:
    """Table of nested logistic regressions of correctness, cross-validated by case."""
    return AnalysisTable(
        name="correctness",
        title="Predictors of a right answer",
        rows=[row for stratum in strata for row in _rows(measured, stratum, settings)],
        shown=SHOWN,
        notes=(
            "Logistic regressions, each row with the predictors of the rows above it; probabilities are those of "
            f"models that were fitted without the case ({settings.folds} folds by case). Gain: reduction of the "
            "log-loss, nats; an interval above 0 means that the block adds information.",
            "Features: " + ", ".join(FEATURES) + " of the log-probabilities.",
        ),
    )


def _rows(measured: ReplyFeatures, stratum: Stratum, settings: AnalysisSettings) -> Iterator[dict[str, Value]]:
    rows = stratum.rows
    correct = measured.replies.correct[rows]
    clusters = measured.replies.group[rows]
    for question, blocks in _questions(measured, rows).items():
        known = np.isfinite(np.column_stack([correct, *blocks.values()])).all(axis=1)
        if known.sum() < settings.least_n or len(np.unique(clusters[known])) < settings.folds:
            continue
        if len(np.unique(correct[known])) < 2:
            continue
        for score in nested_comparison(blocks, correct, clusters, folds=settings.folds, seed=settings.seed):
            yield {
                **stratum.named,
                "question": question,
                "model_of": score.name,
                "n": score.n,
                "predictors": score.predictors,
                "auroc": score.auroc if score.predictors else None,
                "brier": score.brier,
                "log_loss": score.log_loss,
                **with_interval("gain", score.gain, (score.gain_low, score.gain_high)),
            }


def _questions(measured: ReplyFeatures, rows: npt.NDArray[np.int64]) -> dict[str, Mapping[str, Floats]]:
    """Blocks of predictors by question, in the order of the nested models."""
    features = np.column_stack([measured.column(f"logprob.{name}")[rows] for name in FEATURES])
    mean, slope = (measured.column(f"logprob.full.{name}")[rows] for name in ("mean", "slope"))
    length, quality = np.log(measured.length[rows]), measured.replies.quality[rows]
    intercept = np.empty((len(rows), 0))
    questions: dict[str, Mapping[str, Floats]] = {
        "does the slope add to the mean?": {"share": intercept, "mean": mean, "and slope": slope},
        "do the features predict it?": {"share": intercept, "features": features},
    }
    if np.isfinite(quality).any():
        questions["... beyond length and Q?"] = {
            "share": intercept,
            "log T": length,
            "and Q": quality,
            "and features": features,
        }
    return questions


STATED_SHOWN = (
    Column("stratum", "stratum"),
    Column("n", "replies with both", digits=None, short="replies"),
    Column("confidence", "mean confidence", short="stated"),
    Column("accuracy", "correct", short="correct"),
    Column("brier", "Brier", interval=True, short="Brier"),
    Column("brier_constant", "Brier of always stating the share correct", short="constant"),
)


def stated_confidence_table(replies: Replies, strata: Sequence[Stratum], settings: AnalysisSettings) -> AnalysisTable:
    """Table of Brier scores of the stated confidence, for strata with scored replies that state one."""
    found = [row for stratum in strata if (row := _row(replies, stratum, settings)) is not None]
    note = (
        "Brier: mean of (c - [right])^2, 0 (best) to 1, where c is the stated confidence in the given answer, not the "
        "larger of c and 1 - c. The last column is the score of always stating the share of right answers."
    )
    return AnalysisTable(
        "stated_confidence", "Stated confidence against right answers", found, STATED_SHOWN, notes=(note,)
    )


def _row(replies: Replies, stratum: Stratum, settings: AnalysisSettings) -> dict[str, Value] | None:
    known = np.isfinite(replies.confidence[stratum.rows]) & np.isfinite(replies.correct[stratum.rows])
    rows = stratum.rows[known]
    if not len(rows):
        return None
    scores = np.asarray(brier_stated(replies.confidence[rows], replies.correct[rows]))
    accuracy, brier = float(replies.correct[rows].mean()), mean_estimate(scores, replies.group[rows].tolist())
    return {
        **stratum.named,
        "n": len(rows),
        "confidence": float(replies.confidence[rows].mean()),
        "accuracy": accuracy,
        **with_interval("brier", brier.value, brier.interval or (None, None)),
        "brier_constant": accuracy * (1.0 - accuracy),
    }
