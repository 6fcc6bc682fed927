"""The simulated critical reader: its form, its marks, its noise, and what it cannot know."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_calls import TEMPLATES, model

from moot.protocols.crit.replies import Argument, Reading
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import parse_reply

DOCUMENT = (
    "The patient has hepatitis. Yellow skin and dark urine point to the liver. There is no fever. "
    "Weight loss fits a long disease. Itching is common in hepatitis. Travel abroad was mentioned."
)
FACTS = "Yellow skin, dark urine, itching and a mild fever were seen; no travel."
OPPOSING = "A blocked duct explains the itching as well. Weight loss points to a tumour. Gallstones are common."


def asked(**slots: Any) -> Sequence[Message]:
    known = {"claim": "", "text": DOCUMENT, "facts": FACTS, "opposing": OPPOSING, "max_reasons": 5, "max_rivals": 3}
    return TEMPLATES.render("crit/reading", known | slots)


def read(step: str = "k", temperature: float = 0.3, settings: dict[str, float] | None = None, **slots: Any) -> Reading:
    reply = model(7, None, **settings or {}).reply(asked(**slots), Decoding(temperature=temperature), step)
    assert reply.finish_reason == "stop"
    parsed = parse_reply(reply.text, Reading)
    assert not parsed.repaired
    return Reading.model_validate(parsed.data)


def marks(reading: Reading) -> list[tuple[str, float, float]]:
    return [(a.text, a.validity, a.credibility) for a in (*reading.reasons, *reading.rivals)]


class TestReading:
    def test_reasons_are_the_documents_and_rivals_the_other_sides(self) -> None:
        found = read()
        assert found.claim == "The patient has hepatitis."
        assert 1 <= len(found.reasons) <= 4
        assert all(reason.text in DOCUMENT for reason in found.reasons)
        assert 1 <= len(found.rivals) <= 2
        assert all(rival.text in OPPOSING for rival in found.rivals)

    def test_a_denied_fact_is_marked_and_nothing_else(self) -> None:
        told = {reason.text: reason for step in range(20) for reason in read(str(step)).reasons}
        assert len(told) == 5
        assert [text for text, reason in told.items() if reason.contradicts_facts] == ["There is no fever."]
        agreed = read(text="It is a cold. There is no fever.", facts="A cough and no fever.")
        assert not agreed.reasons[0].contradicts_facts
        assert not any(reason.contradicts_facts for reason in read(facts="").reasons)

    @given(st.text(max_size=300), st.text(max_size=200), st.text(max_size=100), st.text(max_size=100))
    def test_any_text_gives_a_reading(self, text: str, opposing: str, facts: str, claim: str) -> None:
        found = read(text=text or "x", opposing=opposing, facts=facts, claim=claim)
        assert all(0.0 <= mark <= 10.0 for each in found.reasons for mark in (each.validity, each.credibility))


class TestMarks:
    def test_follow_the_words_that_the_facts_have(self) -> None:
        found = {
            a.text: a for a in read(temperature=0.0, text=DOCUMENT.replace(" Travel abroad was mentioned.", "")).reasons
        }
        # of yellow, skin, dark, urine, point and liver the facts have the first four
        known: Argument = found["Yellow skin and dark urine point to the liver."]
        assert known.credibility == pytest.approx(1 + 8 * 4 / 6, abs=0.05)
        assert found["Weight loss fits a long disease."].credibility == 1.0

    def test_noise_is_what_is_set(self) -> None:
        document = "It is so. A blocked duct explains itching."
        spread = {}
        for noise in (0.0, 0.05, 0.1):
            told = [
                read(str(n), settings={"judge_noise": noise}, text=document, facts="").reasons[0] for n in range(200)
            ]
            spread[noise] = pstdev(reason.credibility for reason in told)
        assert spread[0.0] == 0.0
        assert spread[0.05] == pytest.approx(0.5, rel=0.2)
        assert spread[0.1] == pytest.approx(1.0, rel=0.2)
