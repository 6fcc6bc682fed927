"""What models write in place of what was asked: read where it is plain, refused where it is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from moot.protocols.reply_parsing import InvalidReply, parse_reply
from moot.protocols.socrasynth.replies import (
    Amendment,
    Closing,
    Comparison,
    Draft,
    LabelledDraft,
    Speech,
    Themes,
)


def read(kind: type[BaseModel], data: Any) -> dict[str, Any]:
    return parse_reply(json.dumps(data), kind).data


def test_topics_by_number_in_any_spelling() -> None:
    told = [{"topic": topic, "argument": "So."} for topic in (1, "2", "Topic 3", "4. Trade")]
    assert [one["topic"] for one in read(Speech, {"arguments": told})["arguments"]] == [1, 2, 3, 4]
    with pytest.raises(InvalidReply, match="topic"):
        read(Speech, {"arguments": [{"topic": "Trade", "argument": "So."}]})


def test_titles_say_something_on_one_line() -> None:
    assert read(Themes, {"themes": [{"title": " Clean\n air "}]})["themes"][0]["title"] == "Clean air"
    for title in (" ", "...", "\n"):
        with pytest.raises(InvalidReply, match="title"):
            read(Themes, {"themes": [{"title": title}]})


@pytest.mark.parametrize("kind", [Speech, Closing])
def test_silence_is_a_reply_only_when_declared(kind: type[BaseModel]) -> None:
    assert read(kind, {"declined": True})["declined"]
    with pytest.raises(InvalidReply, match="is empty although"):
        read(kind, {"declined": False})


def test_what_is_no_mark_is_refused() -> None:
    assert read(Comparison, {"first": "6.5", "second": 0})["first"] == 6.5
    with pytest.raises(InvalidReply, match="first"):
        read(Comparison, {"first": 11, "second": 5})


def test_a_proposal_needs_a_point_and_an_amendment_a_consent() -> None:
    with pytest.raises(InvalidReply, match="points"):
        read(Draft, {"points": [], "questions": []})
    with pytest.raises(InvalidReply, match="consents"):
        read(Amendment, {"points": ["P"]})


@pytest.mark.parametrize(("kind", "said"), [(Speech, "arguments"), (Closing, "statements")])
def test_a_side_that_speaks_has_not_declined(kind: type[BaseModel], said: str) -> None:
    text = said.removesuffix("s")
    spoken = parse_reply(json.dumps({"declined": True, said: [{"topic": 1, text: "Trade rose."}]}), kind)
    assert spoken.data["declined"] is False
    assert parse_reply(json.dumps({"declined": True, said: []}), kind).data["declined"] is True


def test_an_answer_in_words_is_read_as_its_label() -> None:
    """Prompts show a lettered label with its choice, and models copy what they see."""
    said = {"answer": "B) malaria", "points": ["P."]}
    assert parse_reply(json.dumps(said), LabelledDraft, ("A", "B"), ("flu", "malaria")).answer == "B"
