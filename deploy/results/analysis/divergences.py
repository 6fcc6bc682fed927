"""Disagreements of the three signals: confident but weak, well reasoned but wrong, unsure but right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from moot.deploy.results.analysis.replies import ReplyFeatures, Stratum
from moot.deploy.results.analysis.settings import AnalysisSettings
from moot.deploy.results.analysis.table import AnalysisTable, Column, Value, with_interval
from moot.deploy.results.detection.estimates import coefficient, share_estimate
from moot.metrics.jackknife import left_out_sums
from moot.metrics.signal_divergences import CONFIDENT_BUT_WEAK, ConditionPair, conditions, confidence_ends

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
        AnalysisTable("divergences", "Where the signals disagree", counted, SHOWN, notes=(note, read)),
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
