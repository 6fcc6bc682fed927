"""How well the verdicts' confidences fit their being right: Brier score and calibration error, by their source.

The p of one case may be taken before a schema's mask and that of another after it: these are told apart, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from moot.actors.record.schema import CaseKey
from moot.actors.record.tables import read_table
from moot.deploy.reading.detection.estimates import calibration_null, in_words
from moot.deploy.reading.frozen import Frozen
from moot.deploy.reading.record import VerdictRow, decoded
from moot.deploy.reading.summaries.evaluation import BINS
from moot.deploy.reading.text import Interval, number
from moot.metrics.calibration_error import brier_stated, expected_calibration_error


class ConfidenceFigures(Frozen):
    """Confidences of verdicts against whether these are right.

    Attributes:
        source: what the confidence is: `judge`, a judge's score of the answer; `intrinsic`, the mean probability that
            the answer had for those who gave it. The two are different things and are never pooled.
        stage: where these probabilities are taken, see `Intrinsic.stage`; those of several are never pooled either.
            None where none is on record: of a judge's score, of a p from further replies, in older records.
        n: verdicts with a confidence that can be scored.
        brier: mean of (confidence - [right])^2, in [0, 1].
        calibration_error: expected calibration error, 15 equal-frequency bins.
        calibration_null: 95 % of perfectly calibrated forecasters with these confidences would be found between these;
            None of too few cases.
    """

    source: str
    stage: str | None = None
    n: int
    brier: float
    calibration_error: float
    calibration_null: Interval | None


def confidence_figures(folder: str | Path, counted: Sequence[VerdictRow]) -> list[ConfidenceFigures] | None:
    """The figures by source and stage; None where no verdict says where its confidence is from and can be scored.

    Raises:
        RecordError: the record cannot be read.
    """
    right = {verdict.key: verdict.correct for verdict in counted if verdict.correct is not None}
    by_kind: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    for key, (source, stage, confidence) in _confidences(folder).items():
        if key in right:
            by_kind.setdefault((source, stage), []).append((confidence, right[key]))
    return [_figures(*kind, found) for kind, found in sorted(by_kind.items())] or None


def _confidences(folder: str | Path) -> Mapping[CaseKey, tuple[str, str, float]]:
    """Source, stage (empty: not on record) and confidence of each verdict that says them."""
    found = {}
    for row in read_table(folder, "verdicts", ["confidence", "payload"]).to_pylist():
        payload, confidence = decoded(row["payload"]), row["confidence"]
        source, stage = payload.get("confidence_from"), payload.get("confidence_stage")
        if isinstance(source, str) and confidence is not None and 0.0 <= confidence <= 1.0:
            found[row["case_id"], row["attempt"]] = (source, stage if isinstance(stage, str) else "", confidence)
    return found


def _figures(source: str, stage: str, found: Sequence[tuple[float, bool]]) -> ConfidenceFigures:
    confidences, outcomes = zip(*found, strict=True)
    return ConfidenceFigures(
        source=source,
        stage=stage or None,
        n=len(found),
        brier=float(np.mean(brier_stated(confidences, outcomes))),
        calibration_error=expected_calibration_error(confidences, outcomes, bins=BINS),
        calibration_null=calibration_null(confidences, BINS),
    )


def confidence_rows(figures: Sequence[ConfidenceFigures]) -> list[tuple[str, str]]:
    """The figures as pairs of a name and a value in words; the ECE stands beside what a perfect forecaster scores."""
    rows = []
    for each in figures:
        kind = f"{each.source} ({each.stage})" if each.stage else f"{each.source} confidence"
        rows += [
            (f"Brier, {kind}", f"{number(each.brier)} (n = {each.n:,})"),
            (f"ECE, {kind}", f"{number(each.calibration_error)}; if perfect {in_words(each.calibration_null)}"),
        ]
    return rows
