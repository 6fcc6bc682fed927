"""Confidence: distributions and confidences of verdicts against the right answers (Brier, calibration, ranks)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan
from typing import Literal, NamedTuple

import numpy as np

from moot.actors.record.schema import CaseKey
from moot.deploy.results.distributions import Distribution
from moot.deploy.results.figures.claims import trained_on
from moot.deploy.results.figures.verdicts import counted_verdicts
from moot.deploy.results.record import RunRecord, VerdictRow, decode_json, once_per_record
from moot.deploy.results.report.blocks import Block, Chart, Heading, Note, Series, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.stats import (
    calibration_words,
    in_units,
    mean_estimate,
    measure_calibration,
    null_words,
    too_few_words,
)
from moot.deploy.results.text import Interval, count, number, percent
from moot.metrics.brier import brier_multiclass, brier_stated, brier_top_label
from moot.metrics.calibration_error import dependence_inflation, reliability_bins, reliability_null_bands
from moot.metrics.detection import macro_f1
from moot.metrics.distribution import Floats
from moot.metrics.ranking import accuracy_at_k, mean_reciprocal_rank, rank_of_truth
from moot.metrics.selective_prediction import risk_coverage
from moot.protocols.distribution import OTHER
from moot.protocols.evince.events import ConsensusPayload
from moot.protocols.verdict_sources import VerdictSources

_CONVERGED = {"converged": True, "stalled": False, "ensemble": False, "alone": False}
"""Whether the sides had converged, where the end of a debate says so by itself."""


@dataclass(frozen=True)
class ConsensusVerdict:
    """Finished verdict whose payload has `distribution_from: consensus`.

    Attributes:
        gold: the gold label; None without one.
        answer: the likeliest label; None when the mass outside the labels is larger.
        correct: whether the answer is right; None when unknown.
        confidence: probability of the answer; None when unknown.
        crit_mean: mean CRIT score of the sides, in [0, 1]; None when unknown.
        converged: whether the sides had converged, whatever rule ended the debate; None when unknown.
        labels: the closed set.
        distribution: probabilities of the labels and of other answers; None when it is not recorded.
    """

    case_id: str
    question: str
    gold: str | None
    answer: str | None
    correct: bool | None
    confidence: float | None
    crit_mean: float | None
    converged: bool | None
    labels: tuple[str, ...]
    distribution: Distribution | None

    @cached_property
    def score(self) -> ScoredDistribution | Unscorable:
        """Score of the distribution, or the reason why it has none; computed once, because several figures use it."""
        return score_distribution(self.distribution, self.labels, self.gold)


@once_per_record
def consensus_verdicts(record: RunRecord) -> list[ConsensusVerdict]:
    """Consensus verdicts of a run's latest attempts, without failed cases, in order of case id.

    Raises:
        RecordError: the record cannot be read.
    """
    payloads = {
        key: payload
        for key, payload in record.payloads(ConsensusPayload, '"consensus"')
        if payload.distribution_from == "consensus"
    }
    latest = [verdict for verdict in record.verdicts if not verdict.failed and verdict.key in payloads]
    if not latest:
        return []
    table = record.verdict_table
    columns = (table[name].to_pylist() for name in ("case_id", "attempt", "confidence", "distribution"))
    stated = {(case_id, attempt): more for case_id, attempt, *more in zip(*columns, strict=True)}
    columns = (record.cases[name].to_pylist() for name in ("case_id", "question", "labels"))
    cases = {case_id: more for case_id, *more in zip(*columns, strict=True)}
    found = []
    for verdict in latest:
        confidence, distribution = stated[verdict.key]
        payload = payloads[verdict.key]
        question, labels = cases.get(verdict.case_id, (None, None))
        found.append(
            ConsensusVerdict(
                case_id=verdict.case_id,
                question=question or "",
                gold=verdict.gold,
                answer=verdict.answer,
                correct=verdict.correct,
                confidence=confidence,
                crit_mean=payload.crit_mean,
                converged=_CONVERGED.get(verdict.how) if payload.converged is None else payload.converged,
                labels=tuple(labels or ()),
                distribution=decode_json(distribution) if distribution else None,
            )
        )
    return found


Unscorable = Literal["no distribution", "no gold label", "gold outside the labels", "no distribution over the labels"]
"""Reasons why a distribution has no score, in the order of the checks."""


class ScoredDistribution(NamedTuple):
    """Distribution with a known true label, and its Brier score.

    Attributes:
        row: probabilities of the case's labels, in their order, then of other answers (`OTHER`); sum 1.
        truth: index of the true label in `row`.
        brier: multi-class Brier score, 0 to 2.
    """

    row: list[float]
    truth: int
    brier: float


def score_distribution(
    distribution: Distribution | None, labels: Sequence[str], gold: str | None
) -> ScoredDistribution | Unscorable:
    """Score of a distribution, or the reason why it has none.

    A label that is missing in the distribution has the probability 0. The gold label of a case without a closed set is
    outside the labels. A distribution with an unknown probability, or with mass on something other than the labels and
    `OTHER`, is no distribution over the labels.

    Args:
        distribution: the verdict's; None or empty without one.
        labels: the case's closed set; empty without one.
        gold: the gold label; None without one.

    >>> score_distribution({"other": 0.5, "(other)": 0.5}, ("yes", "other"), "other").brier
    0.5
    >>> score_distribution({"yes": 1.0}, ("yes", "no"), "maybe")
    'gold outside the labels'
    """
    if not distribution:
        return "no distribution"
    if gold is None:
        return "no gold label"
    if gold not in labels:
        return "gold outside the labels"
    shares = [distribution.get(label, 0.0) for label in (*labels, OTHER)]
    row = [nan if share is None else share for share in shares]
    truth = list(labels).index(gold)
    brier = float(brier_multiclass(row, truth))
    return "no distribution over the labels" if isnan(brier) else ScoredDistribution(row, truth, brier)


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


def calibration(run: RunRecord) -> Iterator[Block]:
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


def _sources(run: RunRecord) -> Iterator[tuple[str, Sequence[ScoredConfidence]]]:
    for (source, stage), found in scored_confidences(run, counted_verdicts(run)).items():
        yield f"{source} confidence{f' ({stage})' if stage else ''}", found
    consensus = [each for each in consensus_verdicts(run) if each.case_id not in trained_on(run)]
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
