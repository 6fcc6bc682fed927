"""A label at the start of a longer answer: what counts, what does not, and that only replies are read so."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.replies import Position
from moot.protocols.reply_parsing import InvalidReply, Parsed, is_outside_labels, parse_reply
from moot.protocols.text.labels import read_label

YES_NO = ("Yes", "No")
LETTERS = ("A", "B", "C", "D")
UNSURE = ("Yes", "No", "Not sure")
PARTLY = ("Yes", "Yes, in part", "No")
QUOTED = ('He said "no"', 'He said "yes"')
CHINESE, ARABIC, HINDI, RUSSIAN = ("是", "否"), ("نعم", "لا"), ("हाँ", "नहीं"), ("Да", "Нет")


def label_of(text: str, labels: tuple[str, ...], choices: tuple[str, ...] = ()) -> str | None:
    found = read_label(text, labels, choices)
    return None if found is None else found.label


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("No, the meeting was moved", YES_NO, "No"),
        ("**No**, the meeting", YES_NO, "No"),
        ("No - it was moved", YES_NO, "No"),
        ("No (it was moved)", YES_NO, "No"),
        ("No\nThe meeting was moved.", YES_NO, "No"),
        ("No, nothing of it is true", YES_NO, "No"),
        ("(B) because it rained", LETTERS, "B"),
        ("B, a reasonable choice", LETTERS, "B"),
        ("True, because", YES_NO, "Yes"),
        # prefixes of each other: the longest that fits, and none where another may have been meant
        ("Not sure, the text is silent", UNSURE, "Not sure"),
        ("No: the text says so", UNSURE, "No"),
        ("No, not sure", UNSURE, None),
        ("Yes, in part: the first half", PARTLY, "Yes, in part"),
        ("Yes, in that it rained", PARTLY, None),
        ("Yes, the first half", PARTLY, "Yes"),
        ("Unsupported: no source", ("supported", "unsupported"), "unsupported"),
        # quotes and other scripts
        ('He said "no", and left', QUOTED, QUOTED[0]),
        ("是\uff0c会议改期了", CHINESE, "是"),
        ("是。会议改期了", CHINESE, "是"),
        ("是的会议", CHINESE, None),
        ("نعم، لأن", ARABIC, "نعم"),
        ("हाँ। क्योंकि", HINDI, "हाँ"),
        ("Да, потому что", RUSSIAN, "Да"),
        ("Да нет, наверное", RUSSIAN, None),
        # no answer
        ("No evidence either way", YES_NO, None),
        ("No\nevidence", YES_NO, None),
        ("A reasonable answer is C", LETTERS, None),
        ('"No" is not the answer', YES_NO, None),
        ("I think that the answer is: No", YES_NO, None),
        ("yes, but no", YES_NO, None),
        ("Yes, no", YES_NO, None),
        ("Yes/No", YES_NO, None),
        ("A, B and C", LETTERS, None),
        ("C (or D)", LETTERS, None),
        ("(A) and (B)", LETTERS, None),
        ("A? I think B", LETTERS, None),
        ("A.I. is a field", LETTERS, None),
        ("No-one came", YES_NO, None),
        ("No. 5 came", YES_NO, None),
        ("1,5", ("1", "2"), None),
        ("1.5", ("1", "2"), None),
        ("", YES_NO, None),
    ],
)
def test_a_label_in_front_of_a_longer_answer(text: str, labels: tuple[str, ...], expected: str | None) -> None:
    assert label_of(text, labels) == expected


@given(st.sampled_from(YES_NO), st.sampled_from([", ", ": ", "; ", "! ", " - ", ". "]), st.text(max_size=40))
def test_words_behind_a_delimiter_turn_no_label_into_the_other(label: str, delimiter: str, words: str) -> None:
    assert label_of(f"{label}{delimiter}{words}", YES_NO) in (label, None)


def _answered(answer: str, labels: tuple[str, ...] | None = YES_NO) -> Parsed:
    return parse_reply(json.dumps({"answer": answer, "reasoning": "r", "confidence": 0.5}), Position, labels)


def test_a_reply_is_read_by_its_prefix_and_says_so() -> None:
    by_prefix, whole = _answered("No, the meeting was moved"), _answered("No")
    assert (by_prefix.answer, by_prefix.readings) == ("No", ("prefix",))
    assert by_prefix.data["answer"] == "No, the meeting was moved"
    assert (whole.answer, whole.readings) == ("No", ())
    assert _answered("anything, really", None).readings == ()


def test_an_answer_outside_the_labels_is_distinguished_from_other_errors() -> None:
    with pytest.raises(InvalidReply) as outside:
        _answered("perhaps")
    with pytest.raises(InvalidReply) as missing:
        parse_reply('{"answer": "Yes"}', Position, YES_NO)
    with pytest.raises(InvalidReply) as empty:
        _answered("?!", None)
    assert is_outside_labels(str(outside.value))
    assert not is_outside_labels(str(empty.value)), "without labels nothing is outside them"
    assert not is_outside_labels(str(missing.value))
