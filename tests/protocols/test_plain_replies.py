"""Replies in plain text: which lines are read as which fields, and what is no reply."""

from __future__ import annotations

from typing import Any

import pytest

from moot.protocols.ceda.replies import JudgeReply, MessageReply
from moot.protocols.constructor_auditor.replies import NumberSynthesis, Synthesis, score_synthesis
from moot.protocols.evince.side_state import Estimate
from moot.protocols.plain_replies import PLAIN, has_plain_form
from moot.protocols.replies import Position, ReasonedPosition, Score
from moot.protocols.reply_parsing import InvalidReply, Parsed, is_outside_labels, parse_reply, plain_answer_start
from moot.protocols.selene.evidence import Paraphrase

LABELS = ("A", "B", "C")


def read(text: str, model: Any = Position, labels: tuple[str, ...] | None = LABELS) -> Parsed:
    return parse_reply(text, model, labels, plain=True)


@pytest.mark.parametrize(
    ("text", "confidence", "reasoning"),
    [
        ("Answer: B\nReasoning: It fits.\nConfidence: 0.8", 0.8, "It fits."),
        ("**Answer:** (B)\n\n**Confidence:** 80%\nIt fits,\nand A does not.", 0.8, "It fits,\nand A does not."),
        ("It fits.\n- Final answer: B.\n- Confidence: about 0.8 (rather sure)", 0.8, "It fits."),
        ("Answer:\nB\nConfidence:\n.8\nIt fits.", 0.8, "It fits."),
        ("So the answer is B, because it fits.\nConfidence: 0.8", 0.8, "So the answer is B, because it fits."),
        ("Answer: <one of A, B, C>\nAnswer: B\nIt fits.", None, "Answer: <one of A, B, C>\nIt fits."),
        ("Answer: B\nConfidence: high\nIt fits.", None, "It fits."),
        ("Answer: B\nConfidence: 8 out of 10\nIt fits.", None, "It fits."),
        ("B) It fits.", None, "B) It fits."),
        ("It fits, and nothing else does.\nB", None, "It fits, and nothing else does."),
        ("Answer: B", None, "Answer: B"),
    ],
)
@pytest.mark.parametrize("model", [Position, ReasonedPosition])
def test_the_answer_and_the_confidence_are_read_from_their_lines_the_rest_is_prose(
    text: str, confidence: float | None, reasoning: str, model: Any
) -> None:
    parsed = read(text, model)
    assert (parsed.answer, parsed.data["confidence"], parsed.data["reasoning"]) == ("B", confidence, reasoning)
    assert parsed.readings[0] == PLAIN
    start = plain_answer_start(text, model, LABELS, (), ())
    assert start is not None
    assert text[start] == "B"


NUMBERS = {
    **dict.fromkeys(("0.8 because it fits", "0.8 that it is right", "0.8 - fairly sure", "0.8: sure", "0.8. So"), 0.8),
    **dict.fromkeys(("0.8]", "[0.8]", '0.8"', "0,8", "~.8", "about 0.8, I think", "0.8/1.0", "8/10"), 0.8),
    **dict.fromkeys(("80 %", "80% sure", "80 per cent"), 0.8),
    **dict.fromkeys(("0", "0 %", "0 as nothing tells"), 0.0),
    **dict.fromkeys(("0.7-0.8", "0.7 to 0.8", "0.9 out of 1", "1 out of ten", "0/1", "0-1", "0.8 or 0.9", "0.8,0.9")),
    **dict.fromkeys(("0.8 %", "0.8%", "0.8 percent", "150 %", "8", "-0.8", "0.8x", "> 0.8", "at least 0.8", "not 0.8")),
    **dict.fromkeys(("high", "high, as passage 1 says", "0.8, but the answer is 1", "a number from 0 to 1")),
}
"""What a line says, and the number that it is; None where it may be another."""


@pytest.mark.parametrize(("said", "number"), [*NUMBERS.items(), ("80", None)])
def test_a_number_is_read_in_full_or_is_unknown(said: str, number: float | None) -> None:
    assert read(f"Answer: B\nIt fits.\nConfidence: {said}").data["confidence"] == number
    score = f"It fits.\nSupport: supported\nScore: {said}"
    if number is None:
        with pytest.raises(InvalidReply):
            read(score, Score)
    else:
        assert read(score, Score).data["score"] == number


@pytest.mark.parametrize(("said", "number"), [*NUMBERS.items(), ("80", 0.8)])
def test_a_judge_of_claims_states_a_confidence_likewise(said: str, number: float | None) -> None:
    assert read(f"It holds.\nVerdict: 1\nConfidence: {said}", JudgeReply).data["confidence"] == number


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("1 because it holds", 1),
        ("0 - it is wrong", 0),
        ("1 (correct)", 1),
        ("0, as evidence 1 shows", 0),
        ("none", None),
    ],
)
def test_a_verdict_is_the_number_that_its_line_begins_with(said: str, verdict: int | None) -> None:
    assert read(f"It holds.\nVerdict: {said}", JudgeReply).data["verdict"] == verdict


@pytest.mark.parametrize("said", ["0/1", "1 or 0", "hallucinated, as evidence 1 shows", "0.5"])
def test_a_line_that_begins_with_no_verdict_is_none(said: str) -> None:
    with pytest.raises(InvalidReply):
        read(f"It holds.\nVerdict: {said}", JudgeReply)


@pytest.mark.parametrize(
    "text",
    [
        "Answer: A\nAnswer: B",
        "Answer: B\nConfidence: 0.8\nConfidence: 0.2",
        "I cannot tell.",
        "A is what one may think.\nIt may also be B, or C",
        "",
    ],
)
def test_what_differs_or_is_not_there_is_no_reply(text: str) -> None:
    with pytest.raises(InvalidReply):
        read(text)


def test_an_answer_outside_the_labels_is_said_to_be_one() -> None:
    with pytest.raises(InvalidReply) as caught:
        read("Answer: A or B")
    assert is_outside_labels(str(caught.value))


def test_a_reply_in_json_is_read_as_such() -> None:
    parsed = read('Answer: {"answer": "B", "reasoning": "r", "confidence": 0.5}')
    assert (parsed.answer, PLAIN in parsed.readings) == ("B", False)
    assert read("Answer: B\nAs in {A, B}, it fits.").answer == "B"


def test_plain_text_is_no_reply_where_json_was_asked_for() -> None:
    with pytest.raises(InvalidReply):
        parse_reply("Answer: B\nIt fits.\nConfidence: 0.8", Position, LABELS)


@pytest.mark.parametrize("plain", [True, False])
def test_json_must_state_a_confidence(plain: bool) -> None:
    with pytest.raises(InvalidReply, match="confidence" if not plain else "answer"):
        parse_reply('{"answer": "B", "reasoning": "It fits.", "confidence": null}', Position, LABELS, plain=plain)


def test_an_answer_without_labels_needs_its_line() -> None:
    assert read("Answer: The Nile.\nIt is long.", labels=None).answer == "the nile"
    with pytest.raises(InvalidReply):
        read("The Nile is long.", labels=None)


@pytest.mark.parametrize(
    ("model", "text", "data"),
    [
        (Score, "It is there.\nSupport: Supported.\nScore: 90%", {"support": "supported", "score": 0.9}),
        (Score, "Rationale: no\nSupport: not covered\nScore: .5", {"rationale": "no", "support": "not covered"}),
        (Synthesis, "Answer: B\nRationale: its case is better", {"rationale": "its case is better"}),
        (JudgeReply, "It holds.\nVerdict: 1\nConfidence: 0.7", {"summary": "It holds.", "verdict": 1}),
        (JudgeReply, "Verdict: none\nNothing tells.", {"verdict": None, "summary": "Nothing tells."}),
        (MessageReply, "Says: DENY\nIt is not so.\nStance: denies", {"says": "DENY", "text": "It is not so."}),
    ],
)
def test_every_type_with_a_plain_form_is_read_from_its_lines(model: Any, text: str, data: dict[str, Any]) -> None:
    found = read(text, model).data
    assert {name: found[name] for name in data} == data


@pytest.mark.parametrize(
    ("model", "text"),
    [(Score, "Support: supported\nIt is there."), (Score, "Score: 0.9"), (JudgeReply, "The claim is correct.")],
)
def test_a_field_that_a_reply_must_have_is_not_guessed(model: Any, text: str) -> None:
    with pytest.raises(InvalidReply):
        read(text, model)


def test_lists_have_no_plain_form_and_the_answer_of_a_scale_has() -> None:
    assert not has_plain_form(Estimate)
    assert not has_plain_form(Paraphrase)
    assert has_plain_form(NumberSynthesis)
    assert read("Answer: 4\nIt is good.", score_synthesis("[0,5]"), None).answer == "4"
