"""Token confidence against judged reasoning: correlations, and replies where they disagree ("The Confident Liar")."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from moot.deploy.results.figures.judged_replies import Replies, ReplyFeatures, Stratum
from moot.deploy.results.report.blocks import Table as Block
from moot.deploy.results.stats import IntervalEstimate, coefficient, mean_estimate, share_estimate
from moot.deploy.results.text import finite_or_none, p_value
from moot.metrics.brier import brier_stated
from moot.metrics.cluster_bootstrap import resampled_spearman
from moot.metrics.cluster_permutation import permutation_test
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import left_out_sums, left_out_weights
from moot.metrics.nested_models import nested_comparison
from moot.metrics.pearson_test import pearson_test
from moot.metrics.rank_correlation import pearson_matrix, spearman_matrix
from moot.metrics.signal_divergences import (
    CONFIDENT_BUT_WEAK,
    HIGH_QUALITY,
    LOW_QUALITY,
    TAIL,
    ConditionPair,
    conditions,
    confidence_ends,
)
from moot.metrics.significance import benjamini_hochberg


class AnalysisSettings(BaseModel):
    """Settings of an analysis.

    Attributes:
        resamples: number of cluster-bootstrap resamples for every interval of the sweep.
        permutations: number of cluster permutations for every p-value.
        seed: random seed of resamples, permutations and folds.
        folds: number of folds of every cross-validation, grouped by case.
        least_n: fewest replies with a feature for it to be ranked.
        least_class: fewest replies of the rarer class for a binary target to have intervals and be ranked.
        too_few: fewest replies of a stratum that is analysed; a smaller one is listed as too small.
        quantile: tail share of confidence within (domain, role); high and low confidence are the two tails.
        low_quality: largest Q of a weak reply; a flagged reply is weak, too.
        high_quality: smallest Q of a well-reasoned reply, which must not be flagged.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    resamples: int = Field(default=200, ge=50, le=10_000)
    permutations: int = Field(default=1000, ge=100, le=100_000)
    seed: int = 0
    folds: int = Field(default=5, ge=2, le=20)
    least_n: int = Field(default=30, ge=3)
    least_class: int = Field(default=5, ge=1)
    too_few: int = Field(default=10, ge=3)
    quantile: float = Field(default=TAIL, gt=0.0, lt=0.5)
    low_quality: float = LOW_QUALITY
    high_quality: float = HIGH_QUALITY

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.low_quality >= self.high_quality:
            raise ValueError(f"low_quality, {self.low_quality:g}, is not below high_quality, {self.high_quality:g}")
        return self


Value = str | float | int | bool | None
"""Value of a cell. NaN and None are unknown, null in files."""


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table with its format.

    Attributes:
        key: name in files.
        title: displayed name.
        interval: whether the columns `KEY_low` and `KEY_high` contain its 95 % interval.
        digits: decimals of a number; None for text and counts.
        is_p: whether it is a p-value (or a q-value).
        short: title in a terminal; empty for a column of the page and the files only.
    """

    key: str
    title: str
    interval: bool = False
    digits: int | None = 3
    is_p: bool = False
    short: str = ""


@dataclass(frozen=True, slots=True)
class AnalysisTable:
    """Table of an analysis.

    Attributes:
        name: name of its files.
        title: displayed title.
        rows: values by column name; every row has the same keys, in the same order.
        shown: displayed columns, in order; in a terminal the first one is the heading of the rows that share it.
        notes: caveats.
        in_files_only: whether a terminal omits the table and the page collapses it.
        terse: rows shown in a terminal; None for all of them.
    """

    name: str
    title: str
    rows: Sequence[Mapping[str, Value]]
    shown: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    in_files_only: bool = False
    terse: Sequence[Mapping[str, Value]] | None = None

    def block(self, title: str = "", most: int | None = None) -> Block:
        """Report block of the table, or of its first rows; a terminal shows fewer columns."""
        rows = [[format_cell(row, column) for column in self.shown] for row in self.rows[:most]]
        header = [column.title for column in self.shown]
        return Block(title, header, rows, folded=self.in_files_only, terse=self._for_terminal())

    def _for_terminal(self) -> Block:
        """Table of the columns with a short title; a cell does not repeat its heading (`confident ->`)."""
        columns = [
            replace(column, digits=2) if column.interval else column for column in self.shown[1:] if column.short
        ]
        rows = [
            (
                format_cell(row, self.shown[0]),
                *(format_cell(row, column).removeprefix(f"{column.short} ") for column in columns),
            )
            for row in (self.rows if self.terse is None else self.terse)
        ]
        return Block("", (self.shown[0].title, *(column.short for column in columns)), rows, grouped=True)

    def arrow(self) -> pa.Table:
        """Arrow table of the rows, with null for NaN."""
        names = list(self.rows[0]) if self.rows else [column.key for column in self.shown]
        columns = {name: [_known(row[name]) for row in self.rows] for name in names}
        return pa.table({name: pa.array(values) for name, values in columns.items()})


def with_interval(name: str, value: float | None, ends: Sequence[float | None] = (None, None)) -> dict[str, Value]:
    """Columns of a figure and its interval."""
    low, high = ends
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def format_cell(row: Mapping[str, Value], column: Column) -> str:
    """Text of a cell; `-` is unknown.

    >>> format_cell({"rho": 0.25, "rho_low": 0.1, "rho_high": 0.4}, Column("rho", "rho", interval=True))
    '0.250 [0.100, 0.400]'
    >>> format_cell({"x": -0.0001}, Column("x", "x", digits=2))
    '0.00'
    >>> format_cell({"n": 12000}, Column("n", "n", digits=None)), format_cell({"x": None}, Column("x", "x"))
    ('12,000', '-')
    """
    value = _known(row[column.key])
    if value is None:
        return "-"
    if column.is_p:
        return p_value(float(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if column.digits is None:
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    shown = _fixed(value, column.digits)
    low, high = (_known(row.get(f"{column.key}_{end}")) for end in ("low", "high"))
    if not column.interval or low is None or high is None:
        return shown
    return f"{shown} [{_fixed(float(low), column.digits)}, {_fixed(float(high), column.digits)}]"


def _fixed(value: float, digits: int) -> str:
    """Number with fixed decimals, without the sign of a zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def _known(value: Value) -> Value:
    return None if isinstance(value, float) and math.isnan(value) else value


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

PAIRS_SHOWN = (
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
        shown=PAIRS_SHOWN,
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


Booleans = npt.NDArray[np.bool_]

DIVERGENCES_SHOWN = (
    Column("stratum", "stratum"),
    Column("divergence", "divergence", short="divergence"),
    Column("n", "n", digits=None, short="n"),
    Column("count", "cases", digits=None, short="cases"),
    Column("prevalence", "prevalence", interval=True, short="prevalence"),
    Column("independent", "if independent", short="independent"),
    Column("excess", "difference", interval=True),
)

CASES = (
    Column("divergence", "divergence", short="divergence"),
    Column("stratum", "stratum"),
    Column("run", "run"),
    Column("case", "case"),
    Column("reply", "reply"),
    Column("mu", "mu"),
    Column("quality", "Q", digits=1),
    Column("correct", "correct"),
)


def divergence_tables(
    measured: ReplyFeatures, strata: Sequence[Stratum], settings: AnalysisSettings
) -> list[AnalysisTable]:
    """Tables of the prevalence of each divergence beside its value under independence, and of the cases to read.

    Args:
        measured: the feature matrix.
        strata: strata by domain, because high and low confidence are quantiles within (domain, role).
        settings: the settings of the analysis.
    """
    counted: list[dict[str, Value]] = []
    listed: list[dict[str, Value]] = []
    for stratum in strata:
        for each in conditions_in(measured, stratum.rows, settings):
            if each.known.sum() < settings.too_few:
                continue
            row = _counted(each, measured.replies.group[stratum.rows], settings)
            counted.append({"stratum": stratum.words, **_keys(stratum), "divergence": each.name, **row})
            both = each.known & each.first & each.second
            listed += _listed(measured, stratum, each.name, stratum.rows[both])
    high = f"{100 * (1 - settings.quantile):g} %"
    low = f"{100 * settings.quantile:g} %"
    note = (
        f"High confidence: mean log-probability at or above the {high} quantile within domain and role; low: at or "
        f"below the {low} one. Low Q: at most {settings.low_quality:g}, or flagged; high Q: at least "
        f"{settings.high_quality:g} and not flagged. `if independent` is the product of the two shares."
    )
    read = "The cases to read are in the file `divergence_cases`; `moot show RUN CASE` shows one."
    return [
        AnalysisTable("divergences", "Where the signals disagree", counted, DIVERGENCES_SHOWN, notes=(note, read)),
        AnalysisTable("divergence_cases", "Cases to read", listed, CASES, in_files_only=True),
    ]


def conditions_in(
    measured: ReplyFeatures, rows: npt.NDArray[np.int64], settings: AnalysisSettings
) -> Iterator[ConditionPair]:
    """The three divergences among the replies in `rows`; high and low confidence are quantiles of these replies."""
    replies, mu = measured.replies, measured.mu[rows]
    return conditions(
        mu,
        replies.quality[rows],
        replies.flag[rows],
        replies.correct[rows],
        confidence_ends(mu, settings.quantile),
        low_quality=settings.low_quality,
        high_quality=settings.high_quality,
    )


def _counted(each: ConditionPair, groups: npt.NDArray[np.int64], settings: AnalysisSettings) -> dict[str, Value]:
    first, second, clusters = each.first[each.known], each.second[each.known], groups[each.known]
    both = first & second
    columns = np.column_stack([both, first, second, np.ones(len(both))])
    sums = left_out_sums(columns, clusters)
    shares = sums[:, :3] / np.where(sums[:, 3:] > 0.0, sums[:, 3:], np.nan)
    prevalence, independent = float(both.mean()), float(first.mean() * second.mean())
    excess = coefficient(prevalence - independent, shares[:, 0] - shares[:, 1] * shares[:, 2], lowest=-1.0)
    # If no reply or every reply has the divergence, the excess says nothing about other replies.
    is_constant = int(both.sum()) in (0, len(both))
    return {
        "n": len(both),
        "count": int(both.sum()),
        **with_interval("prevalence", prevalence, share_estimate(prevalence, shares[:, 0]).interval or (None, None)),
        "independent": independent,
        **with_interval("excess", excess.value, (None if is_constant else excess.interval) or (None, None)),
    }


def _listed(
    measured: ReplyFeatures, stratum: Stratum, name: str, rows: npt.NDArray[np.int64]
) -> Iterator[dict[str, Value]]:
    replies = measured.replies
    descending = name == CONFIDENT_BUT_WEAK
    order = np.argsort(np.nan_to_num(measured.mu[rows], nan=0.0), kind="stable")
    for row in rows[order[::-1] if descending else order].tolist():
        correct = float(replies.correct[row])
        yield {
            "divergence": name,
            "stratum": stratum.words,
            **_keys(stratum),
            "run": str(replies.run[row]),
            "case": str(replies.case[row]),
            "reply": str(replies.reply[row]),
            "mu": float(measured.mu[row]),
            "quality": float(replies.quality[row]),
            "correct": None if np.isnan(correct) else bool(correct),
        }


def _keys(stratum: Stratum) -> dict[str, Value]:
    keys = dict(stratum.keys)
    return {"domain": keys.pop("dataset"), **keys}
