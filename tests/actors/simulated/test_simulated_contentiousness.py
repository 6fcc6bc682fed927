"""A level of contentiousness in the prompt: read where it is stated, felt in what agents say and how they yield."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_calls import LABELS, concession_rate, opening, question, says, stating

from moot.actors.simulated.prompt import parse_prompt
from moot.actors.simulated.words import PLAIN, REGISTERS, Register
from moot.protocols.messages import Message
from moot.protocols.replies import Position


def spoken(level: float | None, **settings: Any) -> list[str]:
    """Reasonings of openings."""
    asked = [stating(level, opening(question(number))) for number in range(40)]
    return [says(Position, told, reasoning_words=60, labels=LABELS, **settings).reasoning for told in asked]


def in_register(text: str, register: Register) -> bool:
    ended = [closer.split("{}") for closer in register.closers]
    return text.startswith(register.openers) and any(head in text and text.endswith(tail) for head, tail in ended)


class TestReading:
    @pytest.mark.parametrize(
        ("text", "level"),
        [
            ("Contentiousness: 0.9", 0.9),
            ("your contentiousness is 0.7.", 0.7),
            ("**Contentiousness** = 0.3, be kind", 0.3),
            ("The level of contentiousness (0 to 1) is set to 1.", 1.0),
            ("contentiousness [0, 1]: .5", 0.5),
            ("contentiousness\nof 0.25 (0 agrees, 1 never does)", 0.25),
            ("Contentiousness was 0.9. Now contentiousness is 0.", 0.0),
            ("contentiousness is disagreement (0 none, 1 full). Your contentiousness is 0.4", 0.4),
            ("contentiousness 0.694 on a scale from 0 to 1", 0.694),
            ("contentiousness from 0 to 1", None),
            ("contentiousness 5", None),
            ("contentiousness 10", None),
            ("contentiousness 1.5", None),
            ("contentiousness -0.5", None),
            ("contentiousness 90%", None),
            ("contentiousness: 1/10", None),
            ("contentiousness: 1 out of 10", None),
            ("Contentiousness:\n1. Say what is wrong.", None),
            ("Contentiousness is high. 0.9", None),
            ("be contentious: 0.9", None),
            ("", None),
        ],
    )
    def test_what_states_a_level(self, text: str, level: float | None) -> None:
        assert parse_prompt([Message("system", text), Message("user", "why")]).contentiousness == level
        outside = Message("user", f"<question>\nwhy\n</question>\n{text}")
        assert parse_prompt([Message("system", "x"), outside]).contentiousness == level

    @given(st.text(alphabet=" 0123456789.,-()[]%/\ntof:", max_size=80))
    def test_any_number_after_the_word_is_a_level_or_none(self, text: str) -> None:
        level = parse_prompt([Message("system", f"contentiousness{text}")]).contentiousness
        assert level is None or 0.0 <= level <= 1.0


class TestGivingWay:
    def test_falls_as_the_level_rises(self) -> None:
        shares = [concession_rate(level) for level in (0.0, 0.3, 0.7, 1.0)]
        assert all(high > low + 0.05 for high, low in pairwise(shares))

    def test_a_stronger_effect_spreads_the_levels_further(self) -> None:
        spreads = [
            concession_rate(0.1, contentiousness_effect=effect) - concession_rate(0.9, contentiousness_effect=effect)
            for effect in (0.2, 0.5, 1.0)
        ]
        assert 0.1 < spreads[0] < spreads[1] - 0.1 < spreads[2] - 0.2

    def test_no_effect_at_0_nor_at_the_middle_level(self) -> None:
        without = concession_rate(None)
        allowed = 4.0 * math.sqrt(2.0 * without * (1.0 - without) / 300)  # of a difference of two shares
        for level in (0.0, 0.9):
            assert concession_rate(level, contentiousness_effect=0.0) == pytest.approx(without, abs=allowed)
        assert concession_rate(0.5, contentiousness_effect=1.0) == pytest.approx(without, abs=allowed)


class TestRegister:
    @pytest.mark.parametrize(
        ("level", "nearest"), [(1.0, 0.9), (0.9, 0.9), (0.72, 0.7), (0.5, 0.5), (0.31, 0.3), (0.05, 0.0), (0.0, 0.0)]
    )
    def test_follows_the_level(self, level: float, nearest: float) -> None:
        assert all(in_register(text, REGISTERS[nearest]) for text in spoken(level))

    def test_is_plain_without_a_level_or_an_effect(self) -> None:
        for texts in (spoken(None), spoken(0.9, contentiousness_effect=0.0)):
            assert all(in_register(text, PLAIN) for text in texts)
