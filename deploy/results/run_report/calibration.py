"""Calibration of confidence: reliability diagrams, risk-coverage curves, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from moot.deploy.results.detection.estimates import (
    calibration_words,
    in_units,
    mean_estimate,
    measure_calibration,
    null_words,
)
from moot.deploy.results.report.blocks import Block, Chart, Heading, Note, Series, Table
from moot.deploy.results.run_report.data import RunData
from moot.deploy.results.summaries.consensus import consensus_verdicts
from moot.deploy.results.summaries.evaluation import (
    BINS,
    ScoredConfidence,
    scored_confidences,
    top_label_confidences,
)
from moot.deploy.results.text import count, number
from moot.metrics.brier import brier_stated
from moot.metrics.calibration_error import dependence_inflation, reliability_bins, reliability_null_bands
from moot.metrics.distribution import Floats
from moot.metrics.selective_prediction import risk_coverage


def calibration(run: RunData) -> Iterator[Block]:
    """Calibration of each source of confidence; nothing where no verdict with one can be scored."""
    sources = [(words, found) for words, found in _sources(run) if found]
    if not sources:
        return
    yield Heading("When confidence is right")
    for number_, (words, found) in enumerate(sources):
        groups = [run.references.group(each.case_id) for each in found]
        confidences = np.array([each.confidence for each in found])
        outcomes = np.array([each.right for each in found], np.float64)
        yield from calibration_blocks(f"calibration-{number_}", words, confidences, outcomes, groups, bins=BINS)


def _sources(run: RunData) -> Iterator[tuple[str, Sequence[ScoredConfidence]]]:
    for (source, stage), found in scored_confidences(run, run.counted).items():
        yield f"{source} confidence{f' ({stage})' if stage else ''}", found
    consensus = [each for each in consensus_verdicts(run) if each.case_id not in run.trained_on]
    yield "probability of the answer in the consensus", top_label_confidences(consensus)


def calibration_blocks(
    name: str, words: str, confidences: Floats, outcomes: Floats, groups: Sequence[str], *, bins: int
) -> Iterator[Block]:
    """Reliability diagram, risk-coverage curve and errors of one source of confidence.

    Args:
        name: of its charts.
        words: what the confidence is.
        confidences: `(n,)`, in [0, 1].
        outcomes: `(n,)`, 1 where what it is of is true, else 0.
        groups: of each case: cases of one are dependent.
        bins: of the diagram and of the calibration error.
    """
    yield Heading(f"Calibration: {words}", 3)
    measured = measure_calibration(confidences, outcomes, groups, bins)
    if measured.null is None:
        yield Note(f"ECE: {calibration_words(*measured, len(confidences))}")
        return
    yield Chart(
        f"{name}-reliability",
        f"Reliability: does {words} say how often the answer is right?",
        list(_reliability(confidences, outcomes, groups, bins)),
        x_label="stated confidence",
        y_label="share that is right",
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
        note=f"Points on the diagonal are calibrated, below it overconfident. Up to {bins} bins of equally many cases. "
        "A calibrated forecaster with these confidences would fall into the band 95 % of the time.",
    )
    curve = risk_coverage(confidences, outcomes)
    yield Chart(
        f"{name}-risk",
        "Risk against coverage: how many errors remain when the least confident answers are left out",
        [Series("errors among the kept", curve.coverage.tolist(), curve.risk.tolist(), mark="line")],
        x_label="share of cases kept",
        y_label="share of errors",
        x_range=(0.0, 1.0),
        note="A curve that falls to the left says that low confidence marks the errors; a flat one, that it does not.",
    )
    brier = mean_estimate(np.asarray(brier_stated(confidences, outcomes)), groups)
    rows = [
        ("Brier score (0 is best)", in_units(brier)),
        ("expected calibration error (ECE)", number(measured.error)),
        ("ECE of a calibrated forecaster", null_words(measured.null)),
        ("area under the risk-coverage curve", number(curve.area)),
        ("cases", count(len(confidences))),
    ]
    yield Table("", ("", "value [95 % interval]"), rows)


def _reliability(confidences: Floats, outcomes: Floats, groups: Sequence[str], bins: int) -> Iterator[Series]:
    found = reliability_bins(confidences, outcomes, bins=bins)
    inflation = dependence_inflation(confidences, outcomes, groups)
    bands = reliability_null_bands(confidences, bins=bins, inflation=inflation)
    x = [each.confidence for each in found]
    low, high = [band.low for band in bands], [band.high for band in bands]
    yield Series("if calibrated (95 %)", x, low=low, high=high, mark="band", style=4)
    yield Series("calibrated", [0.0, 1.0], [0.0, 1.0], mark="line", style=4)
    yield Series("measured", x, [each.accuracy for each in found], style=0)
