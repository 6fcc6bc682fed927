"""Golds and answers are read alike: what names a label, or is a number, in one place does in the other."""

from __future__ import annotations

import json

from hypothesis import assume, example, given
from hypothesis import strategies as st

from moot.protocols.case import Reference
from moot.protocols.errors import TaskFileError
from moot.protocols.replies import Position
from moot.protocols.reply_parsing import InvalidReply, parse_reply
from moot.protocols.tasks import is_correct
from moot.protocols.tasks.own_cases.choices import Choices
from moot.protocols.tasks.own_cases.gold import closed_gold, free_gold
from moot.protocols.tasks.row import Row, is_absent
from moot.protocols.text.folding import fold

MARKS = (" ", ".", ",", "-", "\u2212", "\u2013", "<", ">", "(", ")", "[", "]", "/", ":", "'", "\u2019", "\\boxed{", "}")
WORDS = ("Co", "CO", "Mars", "10", "\u00b2", "\u00bd", "true", "yes", "No", "not", "or", "Answer: ", *"AaBb152")
TEXT = st.lists(st.sampled_from((*MARKS, *WORDS)), min_size=1, max_size=5).map("".join).filter(str.strip)
NUMBERS = (
    ".5;-5;\u22125;+5;1/2;1e3;1e-05;1,5;1,234.5;1.234,5;5%;$12;5 \u20ac;\u00bd;3\u00bd;-(5);5.;5k;2 dozen;~5;**5**"
    ";\\frac{14}{3};-\\frac12;$\\frac{1}{2}$;\\boxed{42};3 \\times 10^8;10\u2078;\\(5\\);\u0665;\uff15;minus 5;50\\%"
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NUMBER = st.sampled_from(NUMBERS.split(";")) | FLOATS.map(str) | st.integers(-(10**30), 10**30).map("{:,}".format)


def answered(text: str, labels: tuple[str, ...] | None = None, choices: tuple[str, ...] = ()) -> str | None:
    reply = json.dumps({"answer": text, "reasoning": "r", "confidence": 0.5})
    try:
        return parse_reply(reply, Position, labels, choices).answer
    except InvalidReply:
        return None


def gold_label(text: object, labels: tuple[str, ...], choices: tuple[str, ...]) -> str | None:
    try:
        (label,) = closed_gold(Row("f", 1, {"gold": text}), "gold", Choices(labels, choices, {"0": 0}), by_place=False)
    except TaskFileError:
        return None
    return label


@given(TEXT, st.lists(TEXT, min_size=2, max_size=4), st.booleans())
@example("102", ["10\u00b2", "102"], True)
@example("B) Mars", ["Mars", "x"], True)
@example("5", ["<5", ">5"], False)
def test_a_text_names_the_same_label_as_a_gold_and_as_an_answer(
    text: str, spellings: list[str], lettered: bool
) -> None:
    forms = [fold(each) for each in spellings]
    assume(lettered or (all(forms) and len(set(forms)) == len(forms)))
    labels = tuple("ABCD"[: len(spellings)]) if lettered else tuple(spellings)
    choices = tuple(spellings) if lettered else ()
    assume(not is_absent(text, (*labels, *choices)) and text.strip() != "-1")
    assert gold_label(text, labels, choices) == answered(text, labels, choices)


@given(NUMBER, NUMBER)
def test_a_number_has_the_same_value_as_a_gold_and_as_an_answer(one: str, other: str) -> None:
    (gold,), scoring = free_gold(Row("f", 1, {"gold": one}), "gold")
    assert scoring == "number"
    reference = Reference(scoring=scoring)
    assert is_correct(answered(one), gold, reference)
    assert is_correct(answered(f"The answer is {one}"), gold, reference)
    (swapped,), _ = free_gold(Row("f", 1, {"gold": other}), "gold")
    assert is_correct(answered(other), gold, reference) == is_correct(answered(one), swapped, reference)


@given(FLOATS | st.integers(-(2**80), 2**80) | st.booleans())
def test_a_value_of_json_is_the_same_as_a_gold_and_as_an_answer(value: float | int | bool) -> None:
    (gold,), scoring = free_gold(Row("f", 1, {"gold": value}), "gold")
    answer = parse_reply(json.dumps({"answer": value, "reasoning": "r", "confidence": 0.5}), Position).answer
    assert (scoring == "number") == (not isinstance(value, bool))
    assert is_correct(answer, gold, Reference(scoring=scoring))
    assert gold_label(value, (gold, "other"), ()) == gold
