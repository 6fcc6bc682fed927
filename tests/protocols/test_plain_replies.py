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
        ("Answer: B\nConfidence: 8/10\nIt fits.", None, "It fits."),
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
