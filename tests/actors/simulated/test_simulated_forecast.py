"""The simulated debater of distributions: as competent as set, moved by what it hears, and reacting to the dial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pytest
from simulated_calls import TEMPLATES, question, says

from moot.actors.simulated.answer_key import AnswerKey
from moot.metrics.divergence import entropy, total_variation
from moot.protocols.case import Case, LabelledCase
from moot.protocols.contentiousness import contentiousness_level
from moot.protocols.distribution import clean
from moot.protocols.evince.side_state import Prediction, SideState
from moot.protocols.messages import Message
from moot.protocols.text.agreement_language import agreement_share

LABELS = ("Flu", "Common cold", "Dengue", "Zika", "Measles", "Mumps", "Malaria")
COUNT = 300
KEY = AnswerKey.from_cases(
    LabelledCase(Case(id=str(n), question=question(n), labels=LABELS), n, LABELS[n % len(LABELS)]) for n in range(COUNT)
)
BASE = {"labels": list(LABELS), "choices": [], "passage": "It began on Monday. The skin is red.", "title": "",
        "top_k": 4, "answer_first": True, "evidence": []}  # fmt: skip


def opening(number: int) -> Sequence[Message]:
    return TEMPLATES.render("evince/opening", BASE | {"question": question(number)})


def response(number: int, own: SideState, other: SideState, level: float | None) -> Sequence[Message]:
    slots: dict[str, Any] = {
        "question": question(number), "round": 1, "earlier": [], "weak": [], "contradicted": [],
        "contentiousness": None if level is None else contentiousness_level(level).slots(),
        "own": own.shown(to_others=False), "others": [other.shown()], "rebut": True,
    }  # fmt: skip
    return TEMPLATES.render("evince/response", BASE | slots)


def predicted(messages: Sequence[Message], step: object, key: AnswerKey | None = KEY, **settings: Any) -> SideState:
    read = says(Prediction, messages, step, key=key, labels=LABELS, **settings)
    cleaned = clean(read.distribution, LABELS)
    assert not cleaned.changes, "the simulated model writes clean distributions"
    assert len(read.distribution) <= 4
    return SideState("agent/0", 0, cleaned, tuple(read.arguments), tuple(read.rebuttals))


def believing(**shares: float) -> SideState:
    masses = {**dict.fromkeys(LABELS, 0.0), **shares}
    prediction = Prediction.model_validate({"distribution": masses, "arguments": ["So it is."]})
    return SideState("agent/1", 0, clean(prediction.distribution, LABELS), tuple(prediction.arguments))


def apart(one: SideState, other: SideState) -> float:
    return float(total_variation(one.cleaned.probabilities, other.cleaned.probabilities))


def test_alone_it_is_as_competent_as_set() -> None:
    for competence in (0.4, 0.78):
        tops = [predicted(opening(n), n, competence=competence).cleaned.top[0] for n in range(COUNT)]
        right = fmean(top == LABELS[n % len(LABELS)] for n, top in enumerate(tops))
        assert abs(right - competence) < 4 * math.sqrt(competence * (1 - competence) / COUNT)


def test_it_comes_towards_what_it_hears_and_the_less_the_more_contentious() -> None:
    own, other = believing(Flu=0.8, Zika=0.2), believing(Dengue=0.8, Zika=0.2)
    left = {
        level: fmean(apart(predicted(response(n, own, other, level), n, key=None), other) for n in range(60))
        for level in (0.9, 0.5, 0.1)
    }
    assert left[0.1] < left[0.5] < left[0.9] < apart(own, other)


def test_the_dial_can_be_turned_off() -> None:
    own, other = believing(Flu=0.8, Zika=0.2), believing(Dengue=0.8, Zika=0.2)
    spread, left = [], []
    for level in (0.9, 0.1):
        asked = [response(n, own, other, level) for n in range(100)]
        turns = [predicted(messages, n, None, contentiousness_effect=0.0) for n, messages in enumerate(asked)]
        spread.append(fmean(float(entropy(turn.cleaned.probabilities)) for turn in turns))
        left.append(fmean(apart(turn, other) for turn in turns))
    assert spread[0] == pytest.approx(spread[1], abs=0.02)
    assert left[0] == pytest.approx(left[1], abs=0.02)


def test_contentiousness_flattens_and_sounds_like_it() -> None:
    own, other = believing(Flu=0.8, Zika=0.2), believing(Flu=0.7, Dengue=0.3)
    spread, words = {}, {}
    for level in (0.9, 0.5, 0.0):
        turns = [predicted(response(n, own, other, level), n) for n in range(60)]
        spread[level] = fmean(float(entropy(turn.cleaned.probabilities)) for turn in turns)
        words[level] = agreement_share(text for turn in turns for text in (*turn.arguments, *turn.rebuttals))
    assert spread[0.9] > spread[0.5] > spread[0.0]
    assert words[0.9] is not None
    assert words[0.0] is not None
    assert words[0.9] < 0.2 < 0.8 < words[0.0]
