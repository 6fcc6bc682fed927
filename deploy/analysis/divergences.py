"""Where the three signals disagree: confident but weak, well reasoned but wrong, unsure but right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.deploy.analysis.measured import Measured
from moot.deploy.analysis.replies import Stratum
from moot.deploy.analysis.settings import AnalysisSettings
from moot.deploy.analysis.table import Column, Table, Value
from moot.metrics.cluster_bootstrap import cluster_weights

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

SHOWN = (
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


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """One stratum's replies that have what a divergence asks for.

    Attributes:
        mu: mean log-probability.
        quality: Q.
        flag: 1 where flagged.
        correct: 1 where the case's answer is right.
        low_mu, high_mu: confidence at or below the one is low, at or above the other high.
    """

    mu: Floats
    quality: Floats
    flag: Floats
    correct: Floats
    low_mu: float
    high_mu: float


Condition = Callable[[Signals, AnalysisSettings], tuple[Booleans, Booleans, Booleans]]
"""Gives where both signals are known, where the first condition holds, and where the second does."""


def confident_but_weak(signals: Signals, settings: AnalysisSettings) -> tuple[Booleans, Booleans, Booleans]:
    """High confidence, low Q or flagged: perhaps a hallucination."""
    known = np.isfinite(signals.mu) & np.isfinite(signals.quality)
    weak = (signals.quality <= settings.low_quality) | (signals.flag == 1.0)
    return known, signals.mu >= signals.high_mu, weak


def good_but_wrong(signals: Signals, settings: AnalysisSettings) -> tuple[Booleans, Booleans, Booleans]:
    """High Q, wrong answer: what was argued well was put together badly."""
    known = np.isfinite(signals.quality) & np.isfinite(signals.correct)
    good = (signals.quality >= settings.high_quality) & (signals.flag != 1.0)
    return known, good, signals.correct == 0.0


def unsure_but_right(signals: Signals, settings: AnalysisSettings) -> tuple[Booleans, Booleans, Booleans]:
    """Low confidence, right answer."""
    known = np.isfinite(signals.mu) & np.isfinite(signals.correct)
    return known, signals.mu <= signals.low_mu, signals.correct == 1.0


DIVERGENCES: dict[str, Condition] = {
    "confident but weak": confident_but_weak,
    "good reasoning, wrong answer": good_but_wrong,
    "unsure but right": unsure_but_right,
}


def divergence_tables(measured: Measured, strata: Sequence[Stratum], settings: AnalysisSettings) -> list[Table]:
    """How often each divergence is there, beside what independence would give, and the cases to read.

    Args:
        strata: by domain rather than by data set: what is high or low is told within (domain, role).
    """
    counted: list[dict[str, Value]] = []
    listed: list[dict[str, Value]] = []
    for stratum in strata:
        signals = signals_of(measured, stratum.rows, settings)
        for name, condition in DIVERGENCES.items():
            known, first, second = condition(signals, settings)
            if known.sum() < settings.too_few:
                continue
            clusters = measured.replies.group[stratum.rows][known]
            row = _counted(first[known], second[known], clusters, settings)
            counted.append({"stratum": stratum.words, **_keys(stratum), "divergence": name, **row})
            listed += _listed(measured, stratum, name, stratum.rows[known & first & second])
    high = f"{100 * (1 - settings.quantile):g} %"
    low = f"{100 * settings.quantile:g} %"
    note = (
        f"High confidence: mean log-probability at or above the {high} quantile within domain and role; low: at or "
        f"below the {low} one. Low Q: at most {settings.low_quality:g}, or flagged; high Q: at least "
        f"{settings.high_quality:g} and not flagged. `if independent`: the product of the two shares."
    )
    read = "The cases to read are in the file `divergence_cases`; `moot show RUN CASE` shows one."
    return [
        Table("divergences", "Where the signals disagree", counted, SHOWN, notes=(note, read)),
        Table("divergence_cases", "Cases to read", listed, CASES, in_files_only=True),
    ]


def signals_of(measured: Measured, rows: npt.NDArray[np.int64], settings: AnalysisSettings) -> Signals:
    """The signals of some replies; the quantiles of confidence are theirs, and nothing is known where both are one."""
    mu = measured.mu[rows]
    known = mu[np.isfinite(mu)]
    low, high = np.quantile(known, [settings.quantile, 1.0 - settings.quantile]) if len(known) else (np.nan, np.nan)
    replies = measured.replies
    mu = np.where(low < high, mu, np.nan)
    return Signals(mu, replies.quality[rows], replies.flag[rows], replies.correct[rows], float(low), float(high))


def _counted(
    first: Booleans, second: Booleans, clusters: npt.NDArray[np.int64], settings: AnalysisSettings
) -> dict[str, Value]:
    both = first & second
    weights = cluster_weights(clusters, 5 * settings.resamples, settings.seed)
    shares = (weights @ np.column_stack([both, first, second])) / weights.sum(axis=1, keepdims=True)
    excess = shares[:, 0] - shares[:, 1] * shares[:, 2]
    prevalence, independent = float(both.mean()), float(first.mean() * second.mean())
    ends = [2.5, 97.5]
    (low, high), (excess_low, excess_high) = (
        # The same in every resample is no certainty, only data without a single such case, or with nothing else.
        (None, None) if np.ptp(values) == 0.0 else np.percentile(values, ends).tolist()
        for values in (shares[:, 0], excess)
    )
    return {
        "n": len(both),
        "count": int(both.sum()),
        "prevalence": prevalence,
        "prevalence_low": low,
        "prevalence_high": high,
        "independent": independent,
        "excess": prevalence - independent,
        "excess_low": excess_low,
        "excess_high": excess_high,
    }


def _listed(measured: Measured, stratum: Stratum, name: str, rows: npt.NDArray[np.int64]) -> Iterator[dict[str, Value]]:
    replies = measured.replies
    descending = name == "confident but weak"
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
