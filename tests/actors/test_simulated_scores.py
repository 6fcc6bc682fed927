"""The simulated agent on essays, which share their questions, and on problems with numbers."""

from __future__ import annotations

import math
from random import Random

import pytest
from simulated_calls import model, opening, position

from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.simulated.belief import independent
from moot.actors.models.simulated.prompt import read_prompt
from moot.actors.models.simulated.settings import SimulatedSettings
from moot.actors.models.simulated.turn import Turn
from moot.protocols.case import Case, LabelledCase
from moot.protocols.messages import Decoding, Message


def test_essays_under_one_question_are_as_easy_as_others() -> None:
    """Were they one question to the simulated agent, nearly all or hardly any would be right."""
    cases = [
        LabelledCase(Case(id=str(i), question="Which score?", passage=f"Essay {i}."), i, str(i % 4)) for i in range(400)
    ]
    key = AnswerKey.from_cases(cases)
    away = []
    for case in cases:
        user = f"<passage>\n{case.case.passage}\n</passage>\n<question>\nWhich score?\n</question>"
        system = '{"answer": ..., "reasoning": ...} with "answer" exactly one of: 0, 1, 2, 3.'
        prompt = read_prompt([Message("system", system), Message("user", user)])
        turn = Turn(prompt, Random(case.index), False, SimulatedSettings(), 3, key)
        away.append(abs(int(independent(turn).answer) - int(case.gold or "")))
    right = away.count(0) / 400
    assert right == pytest.approx(0.78, abs=4 * math.sqrt(0.78 * 0.22 / 400))
    assert away.count(1) > away.count(2) + away.count(3) > 0


def test_a_gold_number_with_commas_or_decimals_has_numbers_as_mistakes() -> None:
    for gold, wrong in (("1,248", {"1249", "1247", "2499"}), ("13.50", {"14.5", "12.5", "30"})):
        key = AnswerKey.from_cases([LabelledCase(Case(id="1", question="how much is it"), 0, gold)])
        messages = opening("how much is it", None)
        said = {position(model(s, key).reply(messages, Decoding(), "a"), None)["answer"] for s in range(300)}
        assert said <= {gold, *wrong}
        assert len(said) > 1
