"""Classification figures over claims (F1, precision, recall, accuracy), with constant answers as baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.claims import Claim, class_of
from moot.deploy.results.detection.estimates import IntervalEstimate, coefficient, share_estimate
from moot.deploy.results.text import mean_of
from moot.metrics.detection import OUTCOMES, DetectionFigures, detection_figures, detection_outcomes, resampled_figures
from moot.metrics.jackknife import LEAST_CLUSTERS, left_out_sums
from moot.metrics.significance import wilson_interval
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED

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
