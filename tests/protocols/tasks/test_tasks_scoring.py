"""Whether an answer is right: as a label, a number, a short text or a score."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from moot.protocols.case import Reference, Scoring
from moot.protocols.replies import Position, Score
from moot.protocols.reply_parsing import parse_reply
from moot.protocols.tasks import is_correct
from moot.protocols.tasks.short_answers import exact_match, normalised, token_f1
from moot.protocols.text.folding import fold
from moot.protocols.text.numbers import same_number, stated_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("72", 72.0),
        ("$1,234.50", 1234.5),
        ("1,234 apples", 1234.0),
        ("1,234,567", 1234567.0),
        ("-3", -3.0),
        ("\u22123", -3.0),
        ("-$5", -5.0),
        ("-(5)", -5.0),
        ("1,23", 1.23),
        ("0,125", 0.125),
        ("3,1416", 3.1416),
        ("1.234,5", 1234.5),
        ("1\u202f234\u202f567", 1234567.0),
        ("1 000", 1000.0),
        ("1'000", 1000.0),
        ("3 \\times 10^8", 3e8),
        ("3 \u00d7 10\u207b\u00b2", 0.03),
        ("10^{-3}", 0.001),
        ("1e\u22123", 0.001),
        ("\u0665", 5.0),
        ("-> 5", 5.0),
        ("~5", 5.0),
        ("approximately 5", 5.0),
        ("$-5", -5.0),
        ("5/2", 2.5),
        ("1 1/2", 1.5),
        ("3\u00bd", 3.5),
        ("50%", 50.0),
        (".5", 0.5),
        ("2e3", 2000.0),
        ("1.5 million dollars", 1.5e6),
        ("The answer is 18.", 18.0),
        ("18 eggs, so the answer is 18", 18.0),
        ("3 * 6 = 18", 18.0),
        ("He sells 16 - 3 = 13\n#### 1,080", 1080.0),
        ("\\\\boxed{18}", 18.0),
        ("1{,}234", 1234.0),
        ("5 or 5.0", 5.0),
        ("the 18th", 18.0),
        ("Answer - 3", 3.0),
        ("- 3", -3.0),
        ("minus 3", -3.0),
        ("Negative 3", -3.0),
        ("- $5", -5.0),
        ("minus $5", -5.0),
        ("answer: - 3", -3.0),
        ("x = - 3", -3.0),
        ("It is - 3.", -3.0),
        ("5k", 5000.0),
        ("$1.2M", 1.2e6),
        ("$1.2 bn", 1.2e9),
        ("2 dozen", 24.0),
        ("2 dozen eggs, that is 24", 24.0),
        ("5 hundred", 500.0),
        ("5 hundred thousand", 500000.0),
        ("16 = 8 + 8", 16.0),
        ("18 (= 9 + 9)", 18.0),
        ("The answer is 18 = 9 + 9", 18.0),
        ("9 + 9 = 18 = 2 * 9", 18.0),
        ("9 + 9 = 18, i.e. = eighteen", 18.0),
        ("3 * 6 = 18, so he saves = 20", 20.0),
        ("x = 5, y = 5", 5.0),
        ("3 / 4", 0.75),
        ("\\frac{3}{4}", 0.75),
        ("-\\frac34", -0.75),
        ("2\\dfrac{1}{2}", 2.5),
        ("\\boxed{\\frac{3}{4}}", 0.75),
        ("\\frac1{2}", 0.5),
        ("\\frac{1}2", 0.5),
        ("-\\frac{-1}{2}", 0.5),
        ("\\left(\\frac{1}{2}\\right)", 0.5),
        ("90^\\circ", 90.0),
        ("90\u00b0", 90.0),
        ("18 m\u00b2", 18.0),
        ("18\\text{ cm}^{3}", 18.0),
        ("18 m/s^2", 18.0),
        ("He earns 26 * 15 = $<<26*15=390>>390 a day.", 390.0),
        ("1_000", 1000.0),
        ("5 km", 5.0),
        ("5 m", 5.0),
        ("Q: Tom has 3 boxes of 5 eggs. How many? A: 15", 15.0),
        ("He buys 3 and sells 5. **A:** $15", 15.0),
        ("3 boxes of 5 eggs each. #### 15", 15.0),
        ("#### 15 dollars for 3 days", 15.0),
        ("#### 15\nExplanation: 3 boxes of 5 eggs", 15.0),
        ("#### 8 + 10 = 18", 18.0),
        ("3 boxes of 5: \\boxed{15}", 15.0),
        ("\\boxed{15} eggs in 3 boxes", 15.0),
        ("$\\boxed{15 \\text{ eggs}}$ of 3 boxes = 2", 15.0),
        ("3 boxes, so \\(\\boxed{\\$1{,}234.50}\\).", 1234.5),
        ("2 of 3 are \\boxed{x = 1\\,234}", 1234.0),
        ("2 of 3: \\boxed{\\frac{3}{4}}", 0.75),
        ("first \\boxed{5}, later \\boxed{5} of 3", 5.0),
    ],
)
def test_the_number_that_a_text_states(text: str, number: float) -> None:
    assert stated_number(text) == pytest.approx(number)
    assert stated_number(fold(text)) == pytest.approx(number), "answers arrive folded"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eighteen",
        "18 or 19",
        "16-3",
        "12,34,567",
        "1.2.3",
        "3:30",
        "m2",
        "5/0",
        "1e999",
        "9" * 400,
        "= ?",
        "5kg",
        "1.2M",
        "5 k",
        "5 lakh",
        "3 hundredths",
        "8 + 8",
        "The answer is 8 + 8",
        "8 plus 8",
        "3 x 3",
        "x = 5, y = 6",
        "x = 5 and y = 6",
        "Total = 8 + 8",
        "1_0",
        "1,23 or 5",
        # not in part
        "5\u00b2",
        "\\boxed{3\\pi}",
        "-\\boxed{5}",
        "2\\boxed{5}",
        "\\boxed{5}\\pi",
        "\\boxed{5}^2",
        "\\boxed{\\sqrt{2}}",
        "\u221a2",
        "2\u221a3",
        "3 pi",
        "e^2",
        "x^{2}",
        "2^10",
        "1e3.5",
        "101\u2082",
        "1/x",
        "\\frac123",
        "\\left(1,2\\right)",
        "\\{1,2\\}",
        "1011_{\\text{two}}",
        "-(-5)",
        "--5",
        "5 - x",
        "5 and a half",
        "5 hours and a half",
        "5 halves",
        "5 degrees below zero",
        "5 is not the answer",
        "5 is wrong",
        "f(2)",
        "\\log 2",
        "x - 5",
        "x-5",
        "5-x",
        "covid-19",
        "|-5|",
        "5 squared",
        "half of 10",
        # bounds, comparisons and negations
        "<5",
        "\u22655",
        "x >= 5",
        "x != 5",
        "5+",
        "5\u00b11",
        "at least 5",
        "5 or more",
        "less than 5",
        "The answer is not 5",
        "It isn't 5.",
        # several
        "(3,4)",
        "1990,1991",
        "3 boxes at 5usd",
        "1/2/3",
        "16 minus 16",
        "2024-05-05",
        "\\frac{x}{2}",
        "\\frac{3+1}{4}",
        "A: 5, B: 6",
        "B: 6, A: 5",
        "#### 18 or 19",
        "#### 3 boxes and 2 eggs",
        "#### 5kg",
        "\\boxed{18 or 19}",
        "\\boxed{5} and \\boxed{6}",
        "\\boxed{eighteen} of 3",
    ],
)
def test_what_states_no_single_number(text: str) -> None:
    assert stated_number(text) is None


@given(st.integers(-(10**12), 10**12))
def test_whole_numbers_however_they_are_written(number: int) -> None:
    for text in (f"{number}", f"{number:,}", f"({number:,}).", f"{number}.00", f"it is {number} in all"):
        assert stated_number(fold(text)) == number


@pytest.mark.parametrize(
    "text",
    [
        "1 ",
        "1+1=",
        "= - ",
        "1,",
        "is  ",
        "(-",
        "\\frac{1}",
        "x = 5, ",
        "1e",
        "\\boxed{",
        "\\boxed{1}",
        "a: 1 ",
        "#### ",
    ],
)
def test_a_long_text_is_read_in_one_go(text: str) -> None:
    """One that backtracks over the whole of it would not end."""
    assert stated_number(text * 50_000) in (None, 1.0, 5.0)


def test_many_blanks_are_read_in_one_go() -> None:
    assert stated_number("1" + " " * 200_000) == 1.0
    assert exact_match("5 " + " " * 200_000 + "+", ["5+"])


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    found = stated_number(text)
    assert found is None or math.isfinite(found)
    assert 0.0 <= token_f1(text, ["a word", text]) <= 1.0


def test_whole_numbers_are_equal_exactly_others_nearly() -> None:
    assert not same_number(Fraction(2**53), Fraction(2**53 + 1))
    assert same_number(Fraction(2, 3), Fraction("0.6666667"))
    assert not same_number(Fraction("0.66"), Fraction(2, 3))


@pytest.mark.parametrize(
    ("reply", "answer"),
    [("18", "18"), ("18.0", "18"), ("-2.5", "-2.5"), ("true", "true"), ('"$1,234.50"', "$1,234.50")],
)
def test_a_reply_may_answer_with_a_number_that_json_knows(reply: str, answer: str) -> None:
    text = f'{{"answer": {reply}, "reasoning": "r", "confidence": 0.5}}'
    assert parse_reply(text, Position).answer == answer
    if reply in ("18", "18.0"):
        assert parse_reply(text, Position, ("17", "18")).answer == "18"


@pytest.mark.parametrize("value", [True, False, None, "2 - 3", "high", 1.5, -0.1, math.nan])
def test_what_is_no_share_is_no_score(value: object) -> None:
    with pytest.raises(ValidationError):
        Score.model_validate({"support": "supported", "score": value})
    with pytest.raises(ValidationError):
        Position.model_validate({"answer": "a", "reasoning": "r", "confidence": value})
    assert Score.model_validate({"support": "supported", "score": "80%"}).score == 0.8


@pytest.mark.parametrize(
    ("answer", "gold", "reference", "correct"),
    [
        ("yes", "Yes", Reference(), True),
        ("the blue nile", "The Blue Nile.", Reference(), True),
        ("no", "Yes", Reference(), False),
        ("no", "Yes", Reference(accepted=("Yes", "No")), True),
        ("72.", "72", Reference(scoring="number"), True),
        ("1234", "1,234", Reference(scoring="number"), True),
        ("-7 degrees", "-7", Reference(scoring="number"), True),
        ("7", "-7", Reference(scoring="number"), False),
        ("seventy", "70", Reference(scoring="number"), False),
        ("70 or 71", "70", Reference(scoring="number"), False),
        ("0.5", "5", Reference(scoring="number"), False),
        ("the edmund barton", "1901", Reference(scoring="short answer", accepted=("1901", "Edmund Barton")), True),
        ("1,901", "1901", Reference(scoring="short answer"), True),
        ("3/4", "0.75", Reference(scoring="short answer", accepted=("0.75", "75%")), True),
        ("12", "1/2", Reference(scoring="short answer"), False),
        ("130", "1:30", Reference(scoring="short answer"), False),
        ("1.2", "(1,2)", Reference(scoring="short answer"), False),
        ("1,2", "(1,2)", Reference(scoring="short answer"), True),
        ("(1, 2)", "(1,2)", Reference(scoring="short answer"), True),
        ("[2,5]", "[2,5)", Reference(scoring="short answer"), False),
        ("[2, 5)", "[2,5)", Reference(scoring="short answer"), True),
        ("(-\u221e, 0]", "(-\\infty,0)", Reference(scoring="short answer"), False),
        ("the 5", "5", Reference(scoring="short answer"), True),
        ("5", ">5", Reference(scoring="short answer"), False),
        (">5", "> 5", Reference(scoring="short answer"), True),
        ("-5 kg", "5 kg", Reference(scoring="short answer"), False),
        ("5 kg.", "5 kg", Reference(scoring="short answer"), True),
        ("510", "5-10", Reference(scoring="short answer"), False),
        ("5\u201310", "5-10", Reference(scoring="short answer"), True),
        ("102", "10\u00b2", Reference(scoring="short answer"), False),
        ("c", "C#", Reference(scoring="short answer"), False),
        ("o-", "O+", Reference(scoring="short answer"), False),
        ("x-1", "x+1", Reference(scoring="short answer"), False),
        ("x^2 + 1", "x^{2}+1", Reference(scoring="short answer"), True),
        ("6 + 5i", "6 - 5i", Reference(scoring="short answer"), False),
        ("\\sqrt{3}/2", "\\dfrac{\\sqrt{3}}{2}", Reference(scoring="short answer"), True),
        ("23x", "\\frac{2}{3x}", Reference(scoring="short answer"), False),
        ("3\u03c0", "3\\pi", Reference(scoring="short answer"), True),
        ("(-\u221e, 2)", "\\left(-\\infty,2\\right)", Reference(scoring="short answer"), True),
        ("(\u221e, 2)", "(-\\infty,2)", Reference(scoring="short answer"), False),
        ("(1, -2)", "(1,-2)", Reference(scoring="short answer"), True),
        ("(1-2)", "(1,-2)", Reference(scoring="short answer"), False),
        ("5 cm", "5 \\text{ cm}", Reference(scoring="short answer"), True),
        ("1205", "120_5", Reference(scoring="short answer"), False),
        ("\u00bd cup", "1/2 cup", Reference(scoring="short answer"), True),
        ("covid19", "Covid-19", Reference(scoring="short answer"), True),
        ("true", "Yes", Reference(scoring="short answer"), True),
        ("\\boxed{Paris}", "Paris", Reference(scoring="short answer"), True),
        ("9007199254740993", "9007199254740992", Reference(scoring="number"), False),
        ("-(5)", "-5", Reference(scoring="number"), True),
        ("14/3", "\\frac{14}{3}", Reference(scoring="number"), True),
        ("barton", "1901", Reference(scoring="short answer", accepted=("1901", "Edmund Barton")), False),
        ("3", "2", Reference(scoring="score", accepted=("2", "3")), True),
        ("4", "2", Reference(scoring="score", accepted=("2", "3")), False),
    ],
)
def test_right_and_wrong(answer: str, gold: str, reference: Reference, correct: bool) -> None:
    assert is_correct(answer, gold, reference) is correct


@pytest.mark.parametrize("scoring", ["label", "number", "short answer", "score"])
def test_what_cannot_be_scored(scoring: Scoring) -> None:
    reference = Reference(scoring=scoring)
    assert is_correct(None, None, reference) is None
    assert is_correct(None, "1", reference) is False
    assert is_correct("1", None, reference) is None
    assert is_correct("", "1", reference) is False


def squad(text: str) -> list[str]:
    """The words of SQuAD's own script, for ASCII."""
    kept = "".join(c for c in text.lower() if c not in string.punctuation)
    return [word for word in kept.split() if word not in ("a", "an", "the")]


ASCII = st.text(st.sampled_from("abthe ,.$-'n1"), max_size=20)


@given(ASCII, st.lists(ASCII, min_size=1, max_size=3))
def test_normalisation_and_f1_are_those_of_squad(answer: str, accepted: list[str]) -> None:
    words, golds = squad(answer), [squad(each) for each in accepted]
    if (
        not words
        or not all(golds)
        or any(re.search(r"1[-.,]|[-.,$]1|-([a-z]\b|$)|\w-(\W|$)", each) for each in (answer, *accepted))
    ):
        return  # a mark of a number or a name counts, other than in SQuAD's script
    best = 0.0
    for gold in golds:
        same = sum((Counter(words) & Counter(gold)).values())
        precision, recall = same / len(words), same / len(gold)
        best = max(best, 2 * precision * recall / (precision + recall) if same else 0.0)
    assert token_f1(answer, accepted) == pytest.approx(best)
    assert exact_match(answer, accepted) == (words in golds)


def test_an_answer_of_articles_is_an_answer() -> None:
    assert normalised("The The") == "the the"
    assert exact_match("A", ["a"])
    assert not exact_match("the", ["a"])
    assert token_f1("", ["word"]) == 0.0


@pytest.mark.parametrize(
    ("text", "folded"), [(".5", ".5"), ("(.5)", ".5"), ("...5", "5"), (". 5", "5"), ('".75".', ".75"), ("5.", "5")]
)
def test_folding_keeps_the_point_of_a_decimal(text: str, folded: str) -> None:
    assert fold(text) == folded
    assert fold(folded) == folded
