"""The label canonicaliser: what names a label, what does not, and that every label names itself."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from moot.protocols.text.folding import fold
from moot.protocols.text.labels import canonical_label, read_label

YES_NO = ("Yes", "No")
LETTERS = ("A", "B", "C", "D")
CHOICES = ("It rained .", "None of the above choices .", "He was late .", "They won .")


@pytest.mark.parametrize(
    ("text", "labels", "choices", "expected"),
    [
        # the label itself, under noise
        ("Yes", YES_NO, (), "Yes"),
        ("  'no'. ", YES_NO, (), "No"),
        ("**YES!**", YES_NO, (), "Yes"),
        ("`No`", YES_NO, (), "No"),
        ("\u201cYes.\u201d", YES_NO, (), "Yes"),
        ("\u00abNo\u00bb", YES_NO, (), "No"),
        ("[B]", LETTERS, CHOICES, "B"),
        ("not  \n enough info", ("Supported", "Not enough info"), (), "Not enough info"),
        # usual aliases
        ("true", YES_NO, (), "Yes"),
        ("FALSE", YES_NO, (), "No"),
        ("y", YES_NO, (), "Yes"),
        ("N", YES_NO, (), "No"),
        ("correct", YES_NO, (), "Yes"),
        ("Incorrect.", YES_NO, (), "No"),
        ("true", ("Yes", "No", "Maybe"), (), "Yes"),
        ("true", LETTERS, CHOICES, None),
        ("true", ("yes", "no", "maybe", "other"), (), None),
        # an alias gives way to a label of that name
        ("correct", ("Yes", "No", "Correct"), (), "Correct"),
        ("true", ("Yes", "True"), (), "True"),
        ("y", ("Yes", "Y"), (), "Y"),
        ("B", ("A", "B"), ("B", "A"), "B"),
        # signs count
        ("5", ("<5", "5-10", ">10"), (), None),
        ("10", ("<5", "5-10", ">10"), (), None),
        ("<5", ("<5", "5-10", ">10"), (), "<5"),
        ("<5, because", ("<5", "5-10", ">10"), (), "<5"),
        ("5\u201310", ("<5", "5-10", ">10"), (), "5-10"),
        ("<B>", LETTERS, CHOICES, "B"),
        ("5", ("+5", "-5"), (), "+5"),
        ("\u22125", ("+5", "-5"), (), "-5"),
        ("A-", ("A+", "A", "A-"), (), "A-"),
        # exact before folded, and none where several fit
        ("aa", LETTERS[:3], ("AA", "Aa", "aa"), "C"),
        ("*aa*.", LETTERS[:3], ("AA", "Aa", "aa"), "C"),
        ("aA", LETTERS[:3], ("AA", "Aa", "aa"), None),
        ("(1, 2)", LETTERS[:3], ("[1, 2]", "(1, 2)", "{1, 2}"), "B"),
        ("1, 2", LETTERS[:3], ("[1, 2]", "(1, 2)", "{1, 2}"), None),
        ("102", LETTERS[:2], ("10\u00b2", "102"), "B"),
        ("10^2", LETTERS[:2], ("10\u00b2", "102"), "A"),
        ("Co", LETTERS[:2], ("CO", "Co"), "B"),
        ("co", LETTERS[:2], ("CO", "Co"), None),
        ("don't", LETTERS[:2], ("Don\u2019t", "Do"), "A"),
        ("x", LETTERS[:2], ("x", "x"), None),
        # numbers by value
        ("0.5", LETTERS[:2], ("0.50", "0.25"), "A"),
        ("0/1", ("0", "1"), (), None),
        ("1000", ("1,000", "2,000"), (), "1,000"),
        ("0.5", LETTERS[:3], (".5", "0.50", "3"), None),
        # truth values of JSON
        ("true", ("True", "False"), (), "True"),
        ("false", ("TRUE", "FALSE", "NOT GIVEN"), (), "FALSE"),
        ("true", ("Correct", "Incorrect"), (), "Correct"),
        # formulas
        ("< 5", ("<5", "5"), (), "<5"),
        ("\u00bd", LETTERS[:2], ("1/2", "1/3"), "A"),
        ("\\frac{1}{3}", LETTERS[:2], ("1/2", "1/3"), "B"),
        ("x^2", LETTERS[:2], ("$x^2$", "$x^3$"), "A"),
        ("\\(x^3\\)", LETTERS[:2], ("$x^2$", "$x^3$"), "B"),
        ("[0,1)", LETTERS[:2], ("[0, 1)", "(0, 1]"), "A"),
        ("NOT_GIVEN", ("TRUE", "FALSE", "NOT GIVEN"), (), "NOT GIVEN"),
        # a letter before the text of its choice
        ("A) -1", LETTERS[:2], ("-1", "1"), "A"),
        ("B) -1", LETTERS[:2], ("-1", "1"), None),
        ("(B) -5 m/s", LETTERS[:2], ("-5 m/s", "5 m/s"), None),
        ("B. 12", LETTERS[:2], ("10", "12"), "B"),
        ("A. 12", LETTERS[:2], ("10", "12"), None),
        ("C. A and B", LETTERS[:3], ("x", "y", "A and B"), "C"),
        ("C. Paris, Texas", LETTERS[:3], ("Paris", "Rome", "Paris, Texas"), "C"),
        ("A) Paris, Texas", LETTERS[:3], ("Paris", "Rome", "Paris, Texas"), None),
        ("B Rome", LETTERS[:2], ("Paris", "Rome"), "B"),
        ("Option B: Rome", LETTERS[:2], ("Paris", "Rome"), "B"),
        ("Option B: Paris", LETTERS[:2], ("Paris", "Rome"), None),
        # wrapped
        ("### Answer: B", LETTERS, CHOICES, "B"),
        ("The answer should be B.", LETTERS, CHOICES, "B"),
        ("\u7b54\u6848\uff1aB", LETTERS, CHOICES, "B"),
        ("Answer: B", LETTERS, CHOICES, "B"),
        ("**Final answer:** (c)", LETTERS, CHOICES, "C"),
        ("The correct answer is option D.", LETTERS, CHOICES, "D"),
        ("\\boxed{B}", LETTERS, CHOICES, "B"),
        ("$\\boxed{\\text{B}}$", LETTERS, CHOICES, "B"),
        ("The answer is He was late", LETTERS, CHOICES, "C"),
        ("The answer is not B", LETTERS, CHOICES, None),
        ("\\boxed{A or B}", LETTERS, CHOICES, None),
        # lettered forms
        ("B. No, C.", LETTERS, CHOICES, None),
        ("B - C", LETTERS, CHOICES, None),
        ("B) He was late", LETTERS, CHOICES, None),
        ("B: C", LETTERS, CHOICES, None),
        ("B, or maybe C", LETTERS, CHOICES, None),
        ("B (wait, D)", LETTERS, CHOICES, None),
        ("C. S. Lewis", LETTERS, (), None),
        ("B. Obama", LETTERS, CHOICES, None),
        ("B. Jupiter", LETTERS, (), "B"),
        ("B. Because it fits", LETTERS, CHOICES, "B"),
        ("2 - 3", ("1", "2", "3"), (), None),
        ("2 - good", ("1", "2", "3"), (), "2"),
        ("2-3", ("1", "2", "3"), (), None),
        ("2/3", ("1", "2", "3"), (), None),
        ("B) because", LETTERS, CHOICES, "B"),
        ("B because it fits", LETTERS, CHOICES, "B"),
        ("B because C", LETTERS, CHOICES, None),
        ("B is the correct answer.", LETTERS, CHOICES, "B"),
        ("B is not correct", LETTERS, CHOICES, None),
        ("(c) He was late", LETTERS, CHOICES, "C"),
        ("D. They won .", LETTERS, CHOICES, "D"),
        ("a: It rained", LETTERS, CHOICES, "A"),
        ("B - since it fits", LETTERS, CHOICES, "B"),
        ("B \u2013 since it fits", LETTERS, CHOICES, "B"),
        ("Option B", LETTERS, CHOICES, "B"),
        ("answer (d)", LETTERS, CHOICES, "D"),
        ("**B)** because", LETTERS, CHOICES, "B"),
        ("\uff22\uff09 because", LETTERS, CHOICES, "B"),
        ("2) two", ("1", "2"), (), "2"),
        ("E) none", LETTERS, CHOICES, None),
        ("(A) and (B)", LETTERS, CHOICES, None),
        ("A) or B) hold", LETTERS, CHOICES, None),
        ("(A), (B)", LETTERS, CHOICES, None),
        ("(A) and a dog", LETTERS, CHOICES, "A"),
        ("(A) but not (B)", LETTERS, CHOICES, None),
        ("(A) and (E)", LETTERS, CHOICES, "A"),
        ("A) No", YES_NO, (), None),
        # the whole text of a choice
        ("he was late", LETTERS, CHOICES, "C"),
        ("None of the above choices.", LETTERS, CHOICES, "B"),
        ("late", LETTERS, CHOICES, None),
        # sentences are not answers
        ("not B", LETTERS, CHOICES, None),
        ("A cat is an animal", LETTERS, CHOICES, None),
        ("I think that it is B", LETTERS, CHOICES, None),
        ("Yes and no", YES_NO, (), None),
        ("not sure", YES_NO, (), None),
        ("yes, but no", YES_NO, (), None),
        ("A.I. is a field", LETTERS, CHOICES, None),
        ("a.m. comes first", LETTERS, CHOICES, None),
        ("D-Day was in 1944", LETTERS, CHOICES, None),
        ("1.5", ("1", "2"), (), None),
        ("2:1", ("1", "2"), (), None),
        ("10) ten", ("1", "2"), (), None),
        # unicode
        ("\uff39\uff25\uff33", YES_NO, (), "Yes"),
        ("\u00a0no\u00a0", YES_NO, (), "No"),
        ("\ufeffno\u200b", YES_NO, (), "No"),
        ("No\u2014it was moved", YES_NO, (), "No"),
        ("NE\u0301", ("Oui", "N\u00e9"), (), "N\u00e9"),
        ("STRASSE", ("Stra\u00dfe", "Weg"), (), "Stra\u00dfe"),
        ("\u662f", ("\u662f", "\u5426"), (), "\u662f"),
        # nothing is nothing, even when a choice is empty
        ("", YES_NO, (), None),
        (" . ", LETTERS, CHOICES, None),
        ("...", ("A", "B"), ("", "x"), None),
        ("", ("A", "B"), ("...", "x"), None),
    ],
)
def test_the_label_of_a_text(
    text: str, labels: tuple[str, ...], choices: tuple[str, ...], expected: str | None
) -> None:
    found = read_label(text, labels, choices)
    assert (None if found is None else found.label) == expected


LABEL = st.text(string.ascii_letters + string.digits + " -/äéñøß是", min_size=1, max_size=12)
QUOTES = st.sampled_from(["", '"', "'", "`", "**", " ", "\n", "(", " \u201c", "\u00a0"])


# --- aliases

DISEASES = ("GERD", "Hepatitis A", "Common cold", "Flu")
NAMES = (("acid reflux",), ("HAV", "viral hepatitis A"), (), ("influenza", "The Flu"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Acid  Reflux.", "GERD"),
        ("**hav**", "Hepatitis A"),
        ("VIRAL HEPATITIS A", "Hepatitis A"),
        ("\u201cthe flu\u201d", "Flu"),
        ("common cold", "Common cold"),
        ("cold", None),
        ("not the flu", None),
        ("viral hepatitis", None),
        ("yes", None),
    ],
)
def test_an_alias_names_its_label(text: str, expected: str | None) -> None:
    assert canonical_label(text, DISEASES, (), NAMES) == expected
    assert canonical_label(text, DISEASES) == (expected if expected == "Common cold" else None)


def test_a_label_goes_before_an_alias_and_that_before_a_choice_and_yes() -> None:
    assert canonical_label("FLU", ("Cold", "Flu"), (), (("flu",), ())) == "Flu"
    assert canonical_label("red", ("A", "B"), ("red", "blue"), ((), ("red",))) == "B"
    assert canonical_label("Q", ("0", "Q"), ("q",)) == "Q"
    assert canonical_label("q", ("0", "Q"), ("q",)) == "0", "the closer spelling first"
    assert canonical_label("true", ("Yes", "No"), (), ((), ("true",))) == "No"
    assert canonical_label("correct", ("Yes", "No"), (), ((), ("true",))) == "Yes"
    assert canonical_label("right", ("Yes", "No"), (), (("right",), ())) == "Yes"


@given(
    spellings=st.lists(LABEL, min_size=2, max_size=9, unique_by=fold),
    cut=st.integers(1, 9),
    choices=st.lists(LABEL, max_size=6).map(tuple),
    case=st.sampled_from([str.upper, str.lower, str.swapcase, str.title, str]),
    before=QUOTES,
    after=QUOTES | st.sampled_from([".", "!", ") ", "\u201d"]),
    space=st.sampled_from([" ", "  ", "\t", "\u2003"]),
)
def test_every_alias_means_its_label_and_every_label_itself(
    spellings: list[str],
    cut: int,
    choices: tuple[str, ...],
    case: type[str],
    before: str,
    after: str,
    space: str,
) -> None:
    assume(all(map(fold, spellings)))
    folded = {fold(spelling): spelling for spelling in spellings}
    assume(all(folded.get(fold(choice), choice) == choice for choice in choices))  # one that is closer goes first
    labels = tuple(spellings[:cut])
    others = spellings[cut:]
    aliases = tuple(tuple(others[i :: len(labels)]) for i in range(len(labels)))
    for label, own in zip(labels, aliases, strict=True):
        for spelling in (label, *own):
            noisy = before + case(spelling).replace(" ", space) + after
            assert canonical_label(noisy, labels, choices, aliases) == label
