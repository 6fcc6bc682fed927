"""Claims: how well a run tells hallucinated from supported ones (F1, calibration, HallusionBench), by category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.classifiers.card import read_card
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.actors.record.schema import CaseKey
from moot.deploy.results.record import RunRecord, VerdictRow, decode_json, once_per_record
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.stats import IntervalEstimate, coefficient, mean_estimate, measure_calibration, share_estimate
from moot.deploy.results.text import Interval, mean_of
from moot.metrics.calibration_error import reliability_bins
from moot.metrics.detection import (
    OUTCOMES,
    DetectionFigures,
    detection_figures,
    detection_outcomes,
    effective_raters,
    error_correlation,
    error_pairs,
    resampled_figures,
)
from moot.metrics.jackknife import LEAST_CLUSTERS, left_out_sums
from moot.metrics.significance import wilson_interval
from moot.protocols.ceda.events import ClaimPayload
from moot.protocols.ceda.stance import Stance
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED, text_hash
from moot.protocols.tasks.hallusionbench import EASY_QUESTIONS, FIGURE_QUESTIONS, HARD_QUESTIONS


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim with its outcome.

    Attributes:
        case_id: the case's id.
        gold: `supported` or `hallucinated`; None when the file has no label.
        group: the group of dependent claims; the case's id for an independent claim.
        tags: tags of the claim's reference.
        state: `open` and `withdrawn` are without a verdict.
        answer: the verdict's label; None for an abstention, and without a verdict.
        judged: whether the verdict contains the judges' bare verdict.
        bare: the judges' bare verdict as a label; None for a tie, or without a usable judgment.
        p_classifier, p_judges: probability that the claim is hallucinated, in [0, 1]; None when unknown.
        trained_on: `claim` when the run's classifier was trained on this claim, in any spelling; `group` when it was
            trained on another claim of its group; None for neither, and without a classifier.
        stances: stances of the debaters' first messages on the claim, by debater; the second debater has read the
            first's message. None when unknown.
        wall_s: seconds from the debate's start to its verdict; None when unknown.
        tokens: tokens of the debate, without measurement-only calls; None when unknown.
    """

    case_id: str
    gold: str | None
    group: str
    tags: Mapping[str, str] = field(default_factory=dict)
    state: Literal["open", "withdrawn", "failed", "finished"] = "finished"
    answer: str | None = None
    judged: bool = False
    bare: str | None = None
    p_classifier: float | None = None
    p_judges: float | None = None
    trained_on: Literal["claim", "group"] | None = None
    stances: Mapping[str, Stance | None] = field(default_factory=dict)
    wall_s: float | None = None
    tokens: int | None = None

    @property
    def is_hallucinated(self) -> float | None:
        """Class index of the gold label: 1 for hallucinated, 0 for supported; None when it is unknown."""
        return class_of(self.gold)


def class_of(label: str | None) -> float | None:
    """Class index of a claim's label, its index in `CLAIM_LABELS`; None for any other text.

    >>> class_of("supported"), class_of("hallucinated"), class_of(None)
    (0.0, 1.0, None)
    """
    return float(CLAIM_LABELS.index(label)) if label in CLAIM_LABELS else None


def read_claims(record: RunRecord, tokens: Mapping[CaseKey, int | None] | None = None) -> list[Claim]:
    """Claims among a run's cases, in the order of the task's file; empty for other tasks.

    Args:
        record: the run's record.
        tokens: tokens by debate, as far as they are known.

    Raises:
        RecordError: the record cannot be read.
        ConfigError: the copy of the classifier's card was changed.
    """
    rows = _cases_of_claims(record.cases)
    if not rows:
        return []
    latest, references = record.by_case, record.references
    columns = (record.verdict_table[name].to_pylist() for name in ("case_id", "attempt", "payload", "wall_s"))
    stated = {(case_id, attempt): (payload, wall_s) for case_id, attempt, payload, wall_s in zip(*columns, strict=True)}
    groups = trained_groups(record.folder) or frozenset()
    found = []
    for row in sorted(rows, key=lambda row: (row["index"], row["case_id"])):
        reference = references[row["case_id"]]
        given = {
            "case_id": row["case_id"],
            "gold": row["gold"] if row["gold"] in CLAIM_LABELS else None,
            "group": references.group(row["case_id"]),
            "tags": reference.tags,
        }
        verdict = latest.get(row["case_id"])
        if verdict is None or verdict.failed:
            found.append(Claim(**given, state="failed" if verdict else record.without_verdict(row["case_id"])))
        else:
            payload, wall_s = stated[verdict.key]
            outcome = _outcome(verdict, data := decode_json(payload))
            known = training_data(data, reference.group, groups)
            used = (tokens or {}).get(verdict.key)
            found.append(Claim(**given, **outcome, trained_on=known, wall_s=wall_s, tokens=used))
    return found


def _cases_of_claims(cases: pa.Table) -> list[dict[str, Any]]:
    """Rows of the cases whose labels are those of claims."""
    labels = cases["labels"]
    cases = cases.filter(pc.fill_null(pc.equal(pc.list_value_length(labels), len(CLAIM_LABELS)), False))
    cases = cases.filter(pc.fill_null(pc.equal(pc.list_element(cases["labels"], 0), CLAIM_LABELS[0]), False))
    rows = cases.select(["case_id", "index", "labels", "gold"]).to_pylist()
    return [row for row in rows if tuple(row["labels"]) == CLAIM_LABELS]


def ids_trained_on(claims: Iterable[Claim]) -> frozenset[str]:
    """Ids of the claims excluded from every score of a run: its classifier was trained on them or on their groups.

    Empty for a run without a classifier, and for other tasks.
    """
    return frozenset(claim.case_id for claim in claims if claim.trained_on)


def trained_groups(folder: str | Path) -> frozenset[str] | None:
    """Hashes of the groups in the training data of a run's classifier; None for a run without a classifier.

    Raises:
        ConfigError: the copy of the classifier's card was changed.
    """
    run = Path(folder)
    return frozenset(read_card(run).trained_on_groups) if (run / CLASSIFIER_CARD).is_file() else None


def training_data(payload: Mapping[str, Any], group: str, groups: frozenset[str]) -> Literal["claim", "group"] | None:
    """Overlap of a claim with the training data of its classifier; see `Claim.trained_on`.

    Args:
        payload: payload of the claim's verdict.
        group: group of the claim; empty for an independent claim.
        groups: hashes of the groups in the training data, see `trained_groups`.
    """
    reading = (ClaimPayload.read(payload) or ClaimPayload()).classifier
    if reading is None:
        return None
    return "claim" if reading.trained_on else "group" if group and text_hash(group) in groups else None


def _outcome(verdict: VerdictRow, payload: Mapping[str, Any]) -> dict[str, Any]:
    claim = ClaimPayload.read(payload) or ClaimPayload()
    return {
        "answer": verdict.answer if verdict.answer in CLAIM_LABELS else None,
        "judged": "verdict" in claim.model_fields_set,
        "bare": None if claim.verdict is None else (SUPPORTED if claim.verdict == 1 else HALLUCINATED),
        "p_classifier": claim.classifier and claim.classifier.p_hallucinated,
        "p_judges": claim.p_judges,
        "stances": claim.first_stances,
    }


@once_per_record
def trained_on(record: RunRecord) -> frozenset[str]:
    """Ids of the cases that the run's classifier was trained on: they are in no accuracy."""
    return frozenset(ids_trained_on(read_claims(record)))


VERDICT, BARE = "verdict", "judges' bare verdict"
ALWAYS = {SUPPORTED: f"always {SUPPORTED}", HALLUCINATED: f"always {HALLUCINATED}"}
"""Names of the baselines with one constant answer."""


class ClassFigures(FrozenModel):
    """Precision, recall and F1 with one class as the positive one.

    Attributes:
        n: number of claims of this class; all figures are unknown where only the other class occurs.
        precision: unknown without a prediction of this class.
        recall: an abstention is a miss.
        f1: harmonic mean of precision and recall.
    """

    n: int
    precision: IntervalEstimate = IntervalEstimate()
    recall: IntervalEstimate = IntervalEstimate()
    f1: IntervalEstimate = IntervalEstimate()


class Detector(FrozenModel):
    """Figures of one classifier of claims.

    Attributes:
        by: `verdict`, `judges' bare verdict`, `always supported` or `always hallucinated`.
        abstained: abstentions, which are misses of their class and wrong in the accuracy.
        supported, hallucinated: figures with this class as the positive one.
        macro_f1: mean of both F1; unknown where only one class occurs.
    """

    by: str
    abstained: int
    supported: ClassFigures
    hallucinated: ClassFigures
    macro_f1: IntervalEstimate
    accuracy: IntervalEstimate

    def of(self, label: str) -> ClassFigures:
        """Figures with this label as the positive class."""
        return self.supported if label == SUPPORTED else self.hallucinated


class ClaimSet(FrozenModel):
    """Figures of several classifiers of the same claims.

    Attributes:
        category: category of the claims; None for all claims.
        n: number of claims.
        groups: number of independent groups.
        only: the only class that occurs; precision is then 1 by construction, so only recall is informative. None
            where both occur.
        detectors: `verdict`, then `judges' bare verdict` where it is known, then the constant answers.
        seconds: mean duration from a debate's start to its verdict; None when unknown.
        tokens: mean tokens of a debate, without measurement-only and shared calls; None when unknown.
        classified: claims with a classifier's probability; without any, the verdict is the judges' bare verdict.
        gain: macro F1 (accuracy where one class occurs) of the verdict minus that of the judges' bare verdict, with the
            interval of the paired difference; None without a bare verdict.
    """

    category: str | None
    n: int
    groups: int
    only: str | None
    detectors: list[Detector]
    seconds: float | None
    tokens: float | None
    classified: int
    gain: IntervalEstimate | None

    def by(self, name: str) -> Detector | None:
        """Figures of the classifier with that name; None without one."""
        return next((each for each in self.detectors if each.by == name), None)

    @property
    def has_bare(self) -> bool:
        """Whether the judges' bare verdict may differ from the verdict; without a classifier they are equal."""
        return self.classified > 0 and self.by(BARE) is not None


def claim_set(claims: Sequence[Claim], category: str | None = None) -> ClaimSet:
    """Classification figures of claims.

    Args:
        claims: claims with a gold label and a verdict, at least one.
        category: their category, used as a name only.
    """
    answers = _answers(claims)
    truth = [claim.is_hallucinated for claim in claims]
    outcomes = np.stack([detection_outcomes(truth, [class_of(each) for each in given]) for given in answers.values()])
    flat = np.moveaxis(outcomes, 0, 1).reshape(len(claims), -1)
    sums = left_out_sums(flat, [claim.group for claim in claims])
    counts = outcomes.sum(axis=1)
    left_out = resampled_figures(counts, sums.reshape(-1, len(answers), OUTCOMES))
    golds = {claim.gold for claim in claims}
    only = next(iter(golds)) if len(golds) == 1 else None
    measured = _Measured(claims, answers, only, detection_figures(counts), left_out)
    return ClaimSet(
        category=category,
        n=len(claims),
        groups=_groups(claims),
        only=only,
        detectors=[measured.detector(name) for name in answers],
        seconds=mean_of(claim.wall_s for claim in claims),
        tokens=mean_of(claim.tokens for claim in claims),
        classified=sum(claim.p_classifier is not None for claim in claims),
        gain=measured.gain(),
    )


def _answers(claims: Sequence[Claim]) -> Mapping[str, Sequence[str | None]]:
    answers: dict[str, Sequence[str | None]] = {VERDICT: [claim.answer for claim in claims]}
    if any(claim.judged for claim in claims):
        answers[BARE] = [claim.bare for claim in claims]
    return answers | {name: [label] * len(claims) for label, name in ALWAYS.items()}


class _Measured(NamedTuple):
    """Claims with the answers by classifier, the only class that occurs (else None), and their figures.

    `left_out` are the figures without each group, in the order of the sorted groups.
    """

    claims: Sequence[Claim]
    answers: Mapping[str, Sequence[str | None]]
    only: str | None
    observed: DetectionFigures
    left_out: DetectionFigures

    def detector(self, name: str) -> Detector:
        place = list(self.answers).index(name)
        classes = [self._class(label, name, place) for label in CLAIM_LABELS]
        one, many = self.observed, self.left_out
        is_share = name not in ALWAYS.values() or self.only is None
        return Detector(
            by=name,
            abstained=sum(answer is None for answer in self.answers[name]),
            supported=classes[0],
            hallucinated=classes[1],
            macro_f1=IntervalEstimate() if self.only else coefficient(one.macro_f1[place], many.macro_f1[:, place]),
            accuracy=self._accuracy(place, is_share=is_share),
        )

    def _accuracy(self, place: int, *, is_share: bool) -> IntervalEstimate:
        """Accuracy: of independent claims with Wilson's interval, as in the summary of a run."""
        n, groups, value = len(self.claims), _groups(self.claims), float(self.observed.accuracy[place])
        if not is_share:
            return IntervalEstimate(value=value)  # of a constant answer where one class occurs: certain by construction
        if groups < max(n, LEAST_CLUSTERS):
            return share_estimate(value, self.left_out.accuracy[:, place])
        ends = wilson_interval(round(value * n), n)
        return IntervalEstimate(value=value, interval=(ends.low, ends.high))

    def _class(self, label: str, name: str, place: int) -> ClassFigures:
        actual = [claim for claim in self.claims if claim.gold == label]
        if self.only not in (None, label):
            return ClassFigures(n=len(actual))
        predicted = [claim for claim, answer in zip(self.claims, self.answers[name], strict=True) if answer == label]
        number = CLAIM_LABELS.index(label)
        is_share = name not in ALWAYS.values()  # the recall of a constant answer is certain by construction
        is_uncertain = is_share and len(actual) < len(self.claims)  # of one class only, precision is 1 by construction

        groups = sorted({claim.group for claim in self.claims})

        def figure(name: str, over: Sequence[Claim], make: Callable[..., IntervalEstimate]) -> IntervalEstimate:
            """The figure with its interval, over the groups that have a claim in it."""
            one, many = getattr(self.observed, name), getattr(self.left_out, name)
            counted = {claim.group for claim in over}
            return make(one[place, number], many[[group in counted for group in groups], place, number])

        return ClassFigures(
            n=len(actual),
            precision=figure("precision", predicted, share_estimate if is_uncertain else coefficient),
            recall=figure("recall", actual, share_estimate if is_share else coefficient),
            f1=figure("f1", [*actual, *predicted], coefficient),
        )

    def gain(self) -> IntervalEstimate | None:
        names = list(self.answers)
        if BARE not in names:
            return None
        first, second = names.index(VERDICT), names.index(BARE)
        one, many = (each.accuracy if self.only else each.macro_f1 for each in (self.observed, self.left_out))
        difference = many[:, first] - many[:, second]
        return coefficient(one[first] - one[second], difference, lowest=-1.0)


def _groups(claims: Iterable[Claim]) -> int:
    return len({claim.group for claim in claims})


def macro_f1_difference(first: Mapping[str, Claim], second: Mapping[str, Claim]) -> IntervalEstimate:
    """Paired difference of macro F1, the first verdicts minus the second, over the common claims.

    Args:
        first, second: claims with a gold label and a verdict, by case id.

    Returns:
        The estimate, with the interval of the paired difference; unknown without common claims, or with claims of one
        class only.
    """
    shared = sorted(first.keys() & second.keys())
    if len({first[each].gold for each in shared}) < 2:
        return IntervalEstimate()
    truth = [first[each].is_hallucinated for each in shared]
    outcomes = [
        detection_outcomes(truth, [class_of(claims[each].answer) for each in shared]) for claims in (first, second)
    ]
    sums = left_out_sums(np.concatenate(outcomes, axis=1), [first[each].group for each in shared])
    counts = [each.sum(axis=0) for each in outcomes]
    one, other = (detection_figures(each).macro_f1 for each in counts)
    many, others = (
        resampled_figures(each, sums[:, place : place + OUTCOMES]).macro_f1
        for each, place in zip(counts, (0, OUTCOMES), strict=True)
    )
    return coefficient(one - other, many - others, lowest=-1.0)


class DebaterErrors(FrozenModel):
    """Correlation of the errors of two debaters' first stances; the second debater has read the first's.

    Attributes:
        debaters: the two roles.
        n: claims with both stances known.
        error_rates: error rate of each debater over these claims.
        rho: correlation of the errors; unknown when one debater always or never errs. No
            interval unless each of both, one, the other and neither erring occurs.
        effective_debaters: effective sample size, 2 / (1 + rho): the number of independent debaters whose mean has
            the same VARIANCE as that of these two. It is not the probability of a common error.
    """

    debaters: tuple[str, str]
    n: int
    error_rates: tuple[float, float]
    rho: IntervalEstimate
    effective_debaters: IntervalEstimate


def debater_errors(claims: Sequence[Claim]) -> DebaterErrors | None:
    """Correlation of the two debaters' errors; None unless there are two with first stances.

    Args:
        claims: claims with a gold label and a verdict.
    """
    names = sorted({name for claim in claims for name in claim.stances})
    if len(names) != 2:
        return None
    errors = [[_is_wrong(claim, name) for claim in claims] for name in names]
    pairs = error_pairs(*errors)
    both = pairs.sum(axis=0)
    n = int(both.sum())
    if not n:
        return None
    known = pairs.sum(axis=1) > 0
    groups = [claim.group for claim, is_known in zip(claims, known, strict=True) if is_known]
    rho = coefficient(error_correlation(both), error_correlation(left_out_sums(pairs[known], groups)), lowest=-1.0)
    if both.min() == 0:  # such a correlation varies less than it would in other claims
        rho = IntervalEstimate(value=rho.value)
    return DebaterErrors(
        debaters=(names[0], names[1]),
        n=n,
        error_rates=(float(both[2] + both[3]) / n, float(both[1] + both[3]) / n),
        rho=rho,
        effective_debaters=_effective(rho),
    )


def _is_wrong(claim: Claim, debater: str) -> bool | None:
    stance = claim.stances.get(debater)
    return None if stance is None else (stance == "supports") != (claim.gold == SUPPORTED)


def _effective(rho: IntervalEstimate) -> IntervalEstimate:
    """Effective number of debaters. It falls as rho rises, so the interval is reversed; unbounded at rho = -1."""
    if rho.value is None or rho.value <= -1.0:
        return IntervalEstimate()
    ends = rho.interval
    interval = None if ends is None else (effective_raters(ends[1], 2), effective_raters(ends[0], 2))
    unbounded = interval is not None and isnan(interval[1])
    return IntervalEstimate(value=effective_raters(rho.value, 2), interval=None if unbounded else interval)


BINS = 10
"""Bins of the calibration error, here and in a classifier's card, of equal frequency as far as equal probabilities
allow."""


class Reliability(FrozenModel):
    """Bin of a reliability diagram.

    Attributes:
        n: number of claims.
        p_hallucinated: mean stated probability.
        hallucinated: share of hallucinated claims.
    """

    n: int
    p_hallucinated: float
    hallucinated: float


class SourceCalibration(FrozenModel):
    """Calibration of the probabilities of one source; the event is `hallucinated`.

    Attributes:
        source: `classifier` or `judges`.
        n: claims with a probability.
        unknown: claims with a verdict and a gold label, but without a probability.
        hallucinated: base rate, the share of hallucinated claims.
        brier: Brier score, 0 to 1.
        brier_of_share: Brier score of always stating the base rate.
        calibration_error: expected calibration error (ECE) over the bins.
        calibration_null: central 95 % of the ECE of a perfectly calibrated forecaster with these probabilities; None
            for too few claims.
        bins: the reliability diagram, by ascending probability.
    """

    source: str
    n: int
    unknown: int
    hallucinated: float
    brier: IntervalEstimate
    brier_of_share: float
    calibration_error: float
    calibration_null: Interval | None
    bins: list[Reliability]


def calibrations(claims: Sequence[Claim]) -> list[SourceCalibration]:
    """Calibration of each source that states a probability, the classifier first.

    Args:
        claims: claims with a gold label and a verdict.
    """
    sources = {
        "classifier": [claim.p_classifier for claim in claims],
        "judges": [claim.p_judges for claim in claims],
    }
    return [
        _calibration(name, claims, stated) for name, stated in sources.items() if any(p is not None for p in stated)
    ]


def _calibration(source: str, claims: Sequence[Claim], stated: Sequence[float | None]) -> SourceCalibration:
    known = [(claim, p) for claim, p in zip(claims, stated, strict=True) if p is not None]
    p = np.array([each for _, each in known])
    truth = np.array([claim.is_hallucinated for claim, _ in known], np.float64)
    share = float(truth.mean())
    groups = [claim.group for claim, _ in known]
    measured = measure_calibration(p, truth, groups, BINS)
    return SourceCalibration(
        source=source,
        n=len(p),
        unknown=len(claims) - len(p),
        hallucinated=share,
        brier=mean_estimate((p - truth) ** 2, groups),
        brier_of_share=share * (1.0 - share),
        calibration_error=measured.error,
        calibration_null=measured.null,
        bins=[
            Reliability(n=each.n, p_hallucinated=each.confidence, hallucinated=each.accuracy)
            for each in reliability_bins(p, truth, bins=BINS)
        ],
    )


ALWAYS_NO = "always no"
_TAGS = {"category", "subcategory", "set", "figure", "question", "visual_input"}

Unit = tuple[str, ...]


class UnitAccuracy(FrozenModel):
    """Accuracy over units: questions, figures or question pairs.

    Attributes:
        share: share of right units, in [0, 1]; unknown without a complete unit.
        n: complete units: all of their questions in the file are in the run, with a verdict and a gold label.
        incomplete: other units with questions in the run.
    """

    share: IntervalEstimate
    n: int
    incomplete: int


class HallusionAccuracies(FrozenModel):
    """HallusionBench scores of one classifier.

    Attributes:
        by: `verdict`, `judges' bare verdict` or `always no`.
        part: `VD` (visual dependent), `VS` (visual supplement), or None for both.
        question: aAcc, accuracy of the questions.
        figure: fAcc, share of figures with all questions right, without questions that have no figure.
        pair: qAcc, share of question pairs (one question about the original and the edited figures of a set) with all
            answers right.
        easy, hard: share of pairs with the original question right, and with the edited ones right.
        left_open_right: abstentions on questions without their figure, which count as right.
    """

    by: str
    part: Literal["VD", "VS"] | None
    question: UnitAccuracy
    figure: UnitAccuracy
    pair: UnitAccuracy
    easy: UnitAccuracy
    hard: UnitAccuracy
    left_open_right: int


def hallusion_accuracies(claims: Sequence[Claim]) -> list[HallusionAccuracies] | None:
    """HallusionBench scores of both parts together and of each; None for claims of another benchmark.

    Args:
        claims: all claims of the run; a claim without a verdict makes its units incomplete.
    """
    ours = [claim for claim in claims if claim.tags.keys() >= _TAGS]
    if not ours:
        return None
    answers: dict[str, Callable[[Claim], str | None]] = {VERDICT: lambda claim: claim.answer}
    if any(claim.judged for claim in ours):
        answers[BARE] = lambda claim: claim.bare
    answers[ALWAYS_NO] = lambda claim: HALLUCINATED
    parts: list[Literal["VD", "VS"] | None] = [None, "VD", "VS"]
    found = []
    for name, answer in answers.items():
        for part in parts:
            if some := [claim for claim in ours if part in (None, claim.tags["category"])]:
                found.append(_accuracies(name, part, some, answer))
    return found


def _accuracies(
    name: str, part: Literal["VD", "VS"] | None, claims: Sequence[Claim], answer: Callable[[Claim], str | None]
) -> HallusionAccuracies:
    right = {claim.case_id: _right(claim, answer(claim)) for claim in claims}
    shown = [claim for claim in claims if not _without_figure(claim)]
    easy = [claim for claim in claims if claim.tags["figure"] == "0"]
    hard = [claim for claim in claims if claim.tags["figure"] != "0"]
    left_open = [c for c in claims if c.gold and _has_verdict(c) and _without_figure(c) and answer(c) is None]
    return HallusionAccuracies(
        by=name,
        part=part,
        question=_accuracy(claims, lambda claim: (claim.case_id,), right),
        figure=_accuracy(shown, lambda claim: _unit(claim, "figure"), right, (FIGURE_QUESTIONS,)),
        pair=_accuracy(claims, _pair, right, (EASY_QUESTIONS, HARD_QUESTIONS)),
        easy=_accuracy(easy, _pair, right, (EASY_QUESTIONS,)),
        hard=_accuracy(hard, _pair, right, (HARD_QUESTIONS,)),
        left_open_right=len(left_open),
    )


def _has_verdict(claim: Claim) -> bool:
    return claim.state == "finished" and not claim.trained_on


def _without_figure(claim: Claim) -> bool:
    return claim.tags["category"] == "VS" and claim.tags["figure"] == "0"


def _right(claim: Claim, answer: str | None) -> bool | None:
    if claim.gold is None or not _has_verdict(claim):
        return None
    return _without_figure(claim) if answer is None else answer == claim.gold


def _unit(claim: Claim, part: str) -> Unit:
    return tuple(claim.tags[name] for name in ("category", "subcategory", "set", part))


def _pair(claim: Claim) -> Unit:
    return _unit(claim, "question")


def _accuracy(
    claims: Sequence[Claim],
    unit: Callable[[Claim], Unit],
    right: Mapping[str, bool | None],
    sizes: tuple[str, ...] = (),
) -> UnitAccuracy:
    """Accuracy over complete units, with resampled groups; every unit is within one group.

    Args:
        claims: the claims.
        unit: unit of a claim.
        right: correctness by case id; None when unknown.
        sizes: tags whose sum is the number of a unit's questions in the file, if the record has them.
    """
    units: dict[Unit, list[Claim]] = defaultdict(list)
    for claim in claims:
        units[unit(claim)].append(claim)
    outcomes = {each: [right[claim.case_id] for claim in found] for each, found in units.items()}
    whole = {
        each: all(outcomes[each])
        for each, found in units.items()
        if None not in outcomes[each] and len(found) >= sum(int(found[0].tags.get(size, "0")) for size in sizes)
    }
    if not whole:
        return UnitAccuracy(share=IntervalEstimate(), n=0, incomplete=len(units))
    right_ones = np.array(list(whole.values()), np.float64)
    share = mean_estimate(right_ones, [units[each][0].group for each in whole], is_share=True)
    return UnitAccuracy(share=share, n=len(whole), incomplete=len(units) - len(whole))


CATEGORY = "category"
"""Tag with the category of a benchmark's claim."""


class DurationSummary(FrozenModel):
    """Durations in seconds from a debate's start to its verdict, waiting for concurrent debates included.

    Attributes:
        n: number of finished claims with a known duration.
        p90: the 90th percentile.
    """

    n: int
    mean: float
    median: float
    p90: float


class Detection(FrozenModel):
    """Detection figures of a run over claims.

    Attributes:
        claims: number of claims, `finished + failed + open`.
        open: claims without a verdict; `withdrawn` of them are withdrawn.
        unlabelled: finished claims without a gold label.
        trained_on: labelled finished claims that the classifier was trained on, in any spelling.
        group_trained_on: other labelled finished claims with a training claim in their group. These three kinds are
            excluded from every figure but the seconds.
        whole: figures over all other finished claims; None without any.
        by_category: figures by the tag `category`; empty unless there are several.
        calibration: calibration of the probabilities, by source.
        debaters: correlation of the errors of the debaters' first stances; None unless there are two with stances.
        hallusionbench: scores as that benchmark's authors define them; None for another task.
        seconds: durations; None when no finished claim has a known one.
    """

    claims: int
    finished: int
    failed: int
    open: int
    withdrawn: int = 0
    unlabelled: int
    trained_on: int
    group_trained_on: int
    whole: ClaimSet | None
    by_category: list[ClaimSet]
    calibration: list[SourceCalibration]
    debaters: DebaterErrors | None
    hallusionbench: list[HallusionAccuracies] | None
    seconds: DurationSummary | None


def measure_detection(claims: Sequence[Claim]) -> Detection:
    """Detection figures of a run's claims, finished or not; see `read_claims`."""
    finished = [claim for claim in claims if claim.state == "finished"]
    labelled = [claim for claim in finished if claim.gold is not None]
    counted = counted_claims(claims)
    return Detection(
        claims=len(claims),
        finished=len(finished),
        failed=sum(claim.state == "failed" for claim in claims),
        open=sum(claim.state in ("open", "withdrawn") for claim in claims),
        withdrawn=sum(claim.state == "withdrawn" for claim in claims),
        unlabelled=len(finished) - len(labelled),
        trained_on=sum(claim.trained_on == "claim" for claim in labelled),
        group_trained_on=sum(claim.trained_on == "group" for claim in labelled),
        whole=claim_set(counted) if counted else None,
        by_category=_by_category(counted),
        calibration=calibrations(counted),
        debaters=debater_errors(counted),
        hallusionbench=hallusion_accuracies(claims),
        seconds=_seconds([claim.wall_s for claim in finished if claim.wall_s is not None]),
    )


def claims_of(found: Detection | None) -> dict[str, Any]:
    """Fields of a comparison's row about a run's claims: `claims`, `seconds`, `trained_on` and `group_trained_on`."""
    if found is None:
        return {"claims": None, "seconds": None, "trained_on": 0, "group_trained_on": 0}
    excluded = {"trained_on": found.trained_on, "group_trained_on": found.group_trained_on}
    return {"claims": found.whole, "seconds": found.seconds, **excluded}


def counted_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Scored claims: finished, with a gold label, and neither they nor their group in the training data."""
    return [c for c in claims if c.state == "finished" and c.gold is not None and not c.trained_on]


def _by_category(claims: Sequence[Claim]) -> list[ClaimSet]:
    categories = sorted({claim.tags.get(CATEGORY, "") for claim in claims})
    if len(categories) < 2:
        return []
    return [
        claim_set([claim for claim in claims if claim.tags.get(CATEGORY, "") == category], category)
        for category in categories
    ]


def _seconds(walls: Sequence[float]) -> DurationSummary | None:
    if not walls:
        return None
    median, p90 = np.quantile(walls, [0.5, 0.9])
    return DurationSummary(n=len(walls), mean=float(np.mean(walls)), median=float(median), p90=float(p90))
