"""HallusionBench scores, as its authors define them: by question, by figure and by question pair.

A question of the part VS (visual supplement) without its figure cannot be answered: an abstention counts as right
there, as in the authors' code. Original questions (figure 0) are the easy ones. Questions about edited figures are the
hard ones; a pair's hard part is right when all of them are.

A figure or a pair counts only with all of its questions, because an incomplete one (after `limit`, or without pictures)
is easier. The tags of its claims state the number of questions in the file; in older records without these tags, it is
the number in the run.

Source: Guan et al., HallusionBench, CVPR 2024, and the authors' evaluation code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.claims import Claim
from moot.deploy.results.detection.estimates import IntervalEstimate, mean_estimate
from moot.deploy.results.detection.figures import BARE, VERDICT
from moot.protocols.claims import HALLUCINATED
from moot.protocols.tasks.hallusionbench import EASY_QUESTIONS, FIGURE_QUESTIONS, HARD_QUESTIONS

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
