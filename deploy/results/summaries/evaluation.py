"""Evaluation of a run's distributions: the true label's rank, Brier scores and calibration, each with its cases.

Only distributions that are a consensus of stated probabilities are scored (`distribution_from: consensus` in the
verdict's payload). SELENE's distributions are shares of votes, not probabilities of being right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import NamedTuple

import numpy as np

from moot.actors.record.schema import CaseKey
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.estimates import calibration_words, measure_calibration, null_words, too_few_words
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_record import RunRecord
from moot.deploy.results.summaries.consensus import ConsensusVerdict, ScoredDistribution
from moot.deploy.results.text import Interval, number, percent
from moot.metrics.brier import brier_stated, brier_top_label
from moot.metrics.detection import macro_f1
from moot.metrics.ranking import accuracy_at_k, mean_reciprocal_rank, rank_of_truth
from moot.protocols.verdict_sources import VerdictSources

BINS = 15
"""Bins of the calibration error, of equal frequency as far as equal confidences allow."""


class MetricValue(FrozenModel):
    """Value of a metric with its number of cases.

    Attributes:
        value: the metric; None when it is undefined.
        n: cases that it is over.
        coverage: their share of the cases whose gold label is one of the closed set, failed and open ones included.
    """

    value: float | None
    n: int
    coverage: float | None


class Evaluation(FrozenModel):
    """Evaluation of distributions against the labels.

    Attributes:
        cases: cases of the run whose gold label is one of the closed set.
        accuracy_at_1, accuracy_at_3, mean_reciprocal_rank: of the true label among the labels sorted by probability,
            ties at their worst; `accuracy_at_3` is None where no case has more than three labels.
        macro_f1: of the answers; a case with most of its mass outside the labels has no answer, which counts as wrong.
        brier_multiclass: over all labels, 0 to 2.
        brier_top_label: of the likeliest label alone, 0 to 1.
        calibration_error: of the likeliest label's probability, 15 equal-frequency bins.
        calibration_null: central 95 % of the error of a perfectly calibrated forecaster with these probabilities;
            None for too few cases.
    """

    cases: int
    accuracy_at_1: MetricValue
    accuracy_at_3: MetricValue | None
    mean_reciprocal_rank: MetricValue
    macro_f1: MetricValue
    brier_multiclass: MetricValue
    brier_top_label: MetricValue
    calibration_error: MetricValue
    calibration_null: Interval | None


def evaluate_distributions(
    verdicts: Sequence[ConsensusVerdict], cases: int, group_of: Callable[[str], str] = str
) -> Evaluation | None:
    """Evaluation of a run's distributions; None when none can be scored.

    Args:
        verdicts: see `consensus_verdicts`.
        cases: cases of the run whose gold label is one of the closed set.
        group_of: group of a case; the cases of one are dependent.
    """
    pairs = _scored(verdicts)
    if not pairs:
        return None
    scores = [each for _, each in pairs]
    answers = [verdict.answer for verdict, _ in pairs]
    truths = [verdict.labels[each.truth] for verdict, each in pairs]
    ranks = [float(rank_of_truth(each.row, each.truth)) for each in scores]
    ids, tops, right = zip(*top_label_confidences(verdicts), strict=True)
    labels = sorted({label for verdict in verdicts for label in verdict.labels})

    calibration = measure_calibration(tops, right, list(map(group_of, ids)), BINS)

    def scored(value: float) -> MetricValue:
        return MetricValue(
            value=None if isnan(value) else value,
            n=len(scores),
            coverage=len(scores) / cases if cases else None,
        )

    return Evaluation(
        cases=cases,
        accuracy_at_1=scored(accuracy_at_k(ranks, 1)),
        accuracy_at_3=scored(accuracy_at_k(ranks, 3)) if max(len(v.labels) for v in verdicts) > 3 else None,
        mean_reciprocal_rank=scored(mean_reciprocal_rank(ranks)),
        macro_f1=scored(macro_f1(truths, answers, labels)),
        brier_multiclass=scored(float(np.mean([each.brier for each in scores]))),
        brier_top_label=scored(
            float(np.mean([brier_top_label(each.row, ok) for each, ok in zip(scores, right, strict=True)]))
        ),
        calibration_error=scored(calibration.error),
        calibration_null=calibration.null,
    )


def _scored(verdicts: Sequence[ConsensusVerdict]) -> list[tuple[ConsensusVerdict, ScoredDistribution]]:
    return [(verdict, verdict.score) for verdict in verdicts if isinstance(verdict.score, ScoredDistribution)]


def top_label_confidences(verdicts: Sequence[ConsensusVerdict]) -> list[ScoredConfidence]:
    """Probability of the likeliest label in each scored distribution, and whether the answer is right."""
    return [
        ScoredConfidence(verdict.case_id, max(each.row), verdict.answer == verdict.labels[each.truth])
        for verdict, each in _scored(verdicts)
    ]


def evaluation_rows(found: Evaluation) -> list[tuple[str, str]]:
    """Rows of the figures, as name and text; the ECE is shown beside that of a perfectly calibrated forecaster."""
    rows = [("Acc@1", _share(found.accuracy_at_1))]
    if found.accuracy_at_3 is not None:
        rows.append(("Acc@3", _share(found.accuracy_at_3)))
    return [
        *rows,
        ("MRR", _value(found.mean_reciprocal_rank)),
        ("macro-F1", _value(found.macro_f1)),
        ("Brier, all labels (0 to 2)", _value(found.brier_multiclass)),
        ("Brier, top label (0 to 1)", _value(found.brier_top_label)),
        *_calibration_rows(found),
    ]


def _calibration_rows(found: Evaluation) -> list[tuple[str, str]]:
    name, error = f"ECE, {BINS} equal-frequency bins", found.calibration_error
    if found.calibration_null is None:
        return [(name, too_few_words(error.n))]
    return [(name, _value(error)), ("ECE if calibrated", null_words(found.calibration_null))]


def _share(found: MetricValue) -> str:
    return f"{percent(found.value)} {_base(found)}"


def _value(found: MetricValue) -> str:
    return f"{number(found.value)} {_base(found)}"


def _base(found: MetricValue) -> str:
    return f"(n = {found.n:,}, coverage {percent(found.coverage)})"


class ConfidenceFigures(FrozenModel):
    """Calibration of the verdicts' confidences, of one source and stage; several are never pooled.

    Attributes:
        source: `judge`: a judge's score of the answer; `intrinsic`: the answer's mean intrinsic probability
            over the replies that gave it.
        stage: the replies with these probabilities, see `Intrinsic.stage`; None for a judge's score, for a probability
            from further replies, and in older records.
        n: verdicts with a confidence that can be scored.
        brier: mean of (confidence - [right])^2, in [0, 1].
        calibration_error: expected calibration error, 15 equal-frequency bins.
        calibration_null: central 95 % of the error of a perfectly calibrated forecaster with these confidences; None
            for too few cases.
    """

    source: str
    stage: str | None = None
    n: int
    brier: float
    calibration_error: float
    calibration_null: Interval | None


def confidence_figures(record: RunRecord, counted: Sequence[VerdictRow]) -> list[ConfidenceFigures] | None:
    """Calibration of confidences by source and stage; None where no scored verdict states the source of its confidence.

    Raises:
        RecordError: the record cannot be read.
    """
    found = scored_confidences(record, counted)
    return [_figures(*kind, each, record.references.group) for kind, each in found.items()] or None


class ScoredConfidence(NamedTuple):
    """Confidence of a verdict, in [0, 1], and whether its answer is right."""

    case_id: str
    confidence: float
    right: bool


def scored_confidences(
    record: RunRecord, counted: Sequence[VerdictRow]
) -> dict[tuple[str, str], list[ScoredConfidence]]:
    """Confidences of the verdicts that can be scored, by source and stage (see `ConfidenceFigures`; empty: unknown).

    Raises:
        RecordError: the record cannot be read.
    """
    right = {verdict.key: verdict.correct for verdict in counted if verdict.correct is not None}
    by_kind: dict[tuple[str, str], list[ScoredConfidence]] = {}
    for key, (source, stage, confidence) in record.once(_confidences).items():
        if key in right:
            by_kind.setdefault((source, stage), []).append(ScoredConfidence(key[0], confidence, right[key]))
    return dict(sorted(by_kind.items()))


def _confidences(record: RunRecord) -> Mapping[CaseKey, tuple[str, str, float]]:
    """Source, stage (empty: not recorded) and confidence of each verdict that states them."""
    table = record.verdict_table
    columns = (table[name].to_pylist() for name in ("case_id", "attempt", "confidence"))
    stated = {(case_id, attempt): confidence for case_id, attempt, confidence in zip(*columns, strict=True)}
    found = {}
    for key, sources in record.payloads(VerdictSources, '"confidence_from"'):
        confidence = stated[key]
        if sources.confidence_from is not None and confidence is not None and 0.0 <= confidence <= 1.0:
            found[key] = (sources.confidence_from, sources.confidence_stage or "", confidence)
    return found


def _figures(
    source: str, stage: str, found: Sequence[ScoredConfidence], group_of: Callable[[str], str]
) -> ConfidenceFigures:
    ids, confidences, outcomes = zip(*found, strict=True)
    calibration = measure_calibration(confidences, outcomes, list(map(group_of, ids)), BINS)
    return ConfidenceFigures(
        source=source,
        stage=stage or None,
        n=len(found),
        brier=float(np.mean(brier_stated(confidences, outcomes))),
        calibration_error=calibration.error,
        calibration_null=calibration.null,
    )


def confidence_rows(figures: Sequence[ConfidenceFigures]) -> list[tuple[str, str]]:
    """Rows of the figures, as name and text; the ECE is shown beside that of a perfectly calibrated forecaster."""
    rows = []
    for each in figures:
        kind = f"{each.source} ({each.stage})" if each.stage else f"{each.source} confidence"
        rows += [
            (f"Brier, {kind}", f"{number(each.brier)} (n = {each.n:,})"),
            (f"ECE, {kind}", calibration_words(each.calibration_error, each.calibration_null, each.n)),
        ]
    return rows
