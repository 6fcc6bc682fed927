"""Confidences that were stated, held against right answers: their mean, the share right, and the Brier score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moot.deploy.analysis.replies import Replies, Stratum
from moot.deploy.analysis.settings import AnalysisSettings
from moot.deploy.analysis.table import Column, Table, Value
from moot.metrics.bootstrap import cluster_bootstrap
from moot.metrics.calibration_error import brier_stated

FEWEST_GROUPS = 5
"""Independent groups of replies below which no interval is given."""

SHOWN = (
    Column("stratum", "stratum"),
    Column("n", "replies with both", digits=None, short="replies"),
    Column("confidence", "mean confidence", short="stated"),
    Column("accuracy", "correct", short="correct"),
    Column("brier", "Brier", interval=True, short="Brier"),
    Column("brier_constant", "Brier of always stating the share correct", short="constant"),
)


def stated_confidence_table(replies: Replies, strata: Sequence[Stratum], settings: AnalysisSettings) -> Table:
    """One row for each stratum with replies that state a confidence and can be scored."""
    found = [row for stratum in strata if (row := _row(replies, stratum, settings)) is not None]
    note = (
        "Brier: mean of (c - [right])^2, 0 (best) to 1, of the one confidence c that was stated of the answer given; "
        "not of the larger of c and 1 - c. Whoever always states the share of right answers scores the last column."
    )
    return Table("stated_confidence", "Stated confidence against right answers", found, SHOWN, notes=(note,))


def _row(replies: Replies, stratum: Stratum, settings: AnalysisSettings) -> dict[str, Value] | None:
    known = np.isfinite(replies.confidence[stratum.rows]) & np.isfinite(replies.correct[stratum.rows])
    rows = stratum.rows[known]
    if not len(rows):
        return None
    scores = np.asarray(brier_stated(replies.confidence[rows], replies.correct[rows]))
    groups, accuracy = replies.group[rows], float(replies.correct[rows].mean())
    low = high = None
    if len(np.unique(groups)) >= FEWEST_GROUPS:
        ends = cluster_bootstrap(
            lambda drawn: float(scores[drawn].mean()), groups, resamples=settings.resamples, seed=settings.seed
        )
        low, high = ends.low, ends.high
    return {
        "stratum": stratum.words,
        **stratum.keys,
        "n": len(rows),
        "confidence": float(replies.confidence[rows].mean()),
        "accuracy": accuracy,
        "brier": float(scores.mean()),
        "brier_low": low,
        "brier_high": high,
        "brier_constant": accuracy * (1.0 - accuracy),
    }
