"""What a prompt asks for fits: a reply of the asked length, in any dialect and script, with any number of topics."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from schema_asks import LABELS, asked

from moot.actors.agent.request_fingerprint import fingerprint, first_messages
from moot.actors.agent.roles import RoleBinding
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.reply_schema import fitting_lengths, reply_schema
from moot.actors.models.schema_dialects import DIALECTS, limited_schema
from moot.actors.simulated.prompt import parse_prompt
from moot.protocols.asked_lengths import ASKED_LENGTH, ASKED_LENGTHS, AskedLength
from moot.protocols.messages import Ask
from moot.protocols.reply_ids import reply_id
from moot.protocols.socrasynth.replies import Amendment, Opening, SingleAnswer
from moot.protocols.templates import Templates

ASKED = [pytest.param(reply, tokens, id=name) for name, reply, tokens in asked()]
PER_TOPIC = ("topics", "count", "themes")


def of_asked_length(schema: Any, marks: Any, lengths: dict[str, AskedLength]) -> Any:
    """A reply to `schema` of the lengths that the prompt asks for; `marks` is the schema that names them."""
    asked_for = lengths.get(marks.get(ASKED_LENGTH, ""))
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return of_asked_length(schema["anyOf"][0], marks["anyOf"][0], lengths)
    match schema["type"]:
        case "object":
            parts = schema["properties"].items()
            return {name: of_asked_length(part, marks["properties"][name], lengths) for name, part in parts}
        case "array":
            count = schema.get("minItems", 1) if asked_for is None else asked_for.most
            return [of_asked_length(schema["items"], marks["items"], lengths)] * count
        case "string":
            return "7" if asked_for is None else "x" * asked_for.needed
    return {"boolean": False, "null": None}.get(schema["type"], schema.get("minimum", 1))


@pytest.mark.parametrize(("reply", "tokens"), ASKED)
def test_a_reply_of_the_asked_length_fits_the_schema(reply: type[BaseModel], tokens: int) -> None:
    marks = limited_schema(reply)
    for room, topics, bytes_each in ((tokens, 5, 1), (tokens, 20, 1), (tokens, 5, 3), (100, 5, 2)):
        sizes = tuple((name, topics) for name in PER_TOPIC)
        lengths = dict(fitting_lengths(reply, LABELS, room, sizes, bytes_each))
        schema = msgspec.json.decode(reply_schema(reply, "vllm", LABELS, room, sizes=sizes, bytes_each=bytes_each).body)
        Draft202012Validator(schema).validate(of_asked_length(schema, marks, lengths))


@pytest.mark.parametrize(("reply", "tokens"), ASKED)
def test_by_default_there_is_room_for_all_that_is_asked(reply: type[BaseModel], tokens: int) -> None:
    """With the protocol's own tokens and five topics nothing is asked for less than the table has."""
    five = tuple((name, 5) for name in (*PER_TOPIC, "top_k", "max_reasons"))
    assert all(length == ASKED_LENGTHS[name] for name, length in fitting_lengths(reply, LABELS, tokens, five).items())


@pytest.mark.parametrize("dialect", [None, *DIALECTS])
def test_no_server_is_sent_the_names_of_lengths(dialect: Any) -> None:
    assert ASKED_LENGTH.encode() not in reply_schema(Opening, dialect).body


def opening(topics: int, text: str = "On trade.") -> Ask:
    """An ask for a side's opening."""
    level = {"level": 0.9, "tone": "t", "emphasis": "e", "language": "l"}
    slots: dict[str, Any] = {
        "question": text, "passage": "", "labels": [], "answers": [], "side": "A", "stance": "for", "transcript": [],
        "contentiousness": level, "topics": [{"title": text, "description": text}] * topics,
    }  # fmt: skip
    return Ask(
        case_id="c", attempt=1, path="p", role="agent/0", template="socrasynth/opening", slots=slots,
        reply=reply_id(Opening),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("topics", "tokens", "dialect", "text", "said"),
    [
        (5, 2000, "vllm", "On trade.", "three to six sentences"),
        (10, 2000, "vllm", "On trade.", "three sentences"),
        (5, 1000, "openai", "On trade.", "three sentences"),
        (10, 400, "vllm", "On trade.", "at most six words"),
        (5, 2000, "vllm", "\u043e \u0432\u043e\u0439\u043d\u0435", "one sentence"),
        (5, 2000, "openai", "\u043e \u0432\u043e\u0439\u043d\u0435", "three to six sentences"),
    ],
)
def test_a_prompt_asks_for_less_where_there_is_less_room(
    topics: int, tokens: int, dialect: Any, text: str, said: str
) -> None:
    binding = RoleBinding(max_tokens=tokens, profile=ModelProfile(schemas=dialect))
    messages = first_messages(opening(topics, text), Templates(), binding)
    assert f'- "argument": {said}.' in parse_prompt(messages).instructions


@pytest.mark.parametrize(("reply", "tokens"), ASKED)
def test_lists_become_shorter_before_a_sentence_does(reply: type[BaseModel], tokens: int) -> None:
    """A text asked for in sentences is less than a short one only where the lists that can be shorter have one item."""
    for room, bytes_each in product((tokens, tokens // 2, tokens // 4), (1, 2, 3)):
        fitting = fitting_lengths(reply, LABELS, room, tuple((name, 5) for name in PER_TOPIC), bytes_each)
        if any(ASKED_LENGTHS[name].unit != "word" and length.unit == "word" for name, length in fitting.items()):
            assert all(length.most == 1 for length in fitting.values() if length.unit == "item")


def test_in_another_script_a_list_has_fewer_points_of_a_sentence() -> None:
    def said(reply: type[BaseModel]) -> dict[str, str]:
        return {name: str(length) for name, length in fitting_lengths(reply, None, 2000, (), 2).items()}

    assert said(SingleAnswer) == {"answer_points": "at most five", "statement": "at most one sentence"}
    assert said(Amendment)["points"] == "at most four"
    assert said(Amendment)["point"] == "at most one short sentence"


def test_a_user_s_template_has_the_numbers_in_its_text_and_hash(tmp_path: Path) -> None:
    written = Templates().sources["socrasynth/opening"].replace("length.argument(3, 6)", "length.argument(3)")
    (tmp_path / "socrasynth").mkdir()
    (tmp_path / "socrasynth" / "opening.j2").write_text(written)
    theirs = Templates(tmp_path)
    assert "length.argument(3, 6)" in theirs.sources["socrasynth/opening"]
    assert theirs.hash("socrasynth/opening") == Templates().hash("socrasynth/opening")
    theirs.add("mine", written)
    assert theirs.sources["mine"] == theirs.sources["socrasynth/opening"]


def test_the_number_of_a_length_is_in_the_template_and_what_shortens_it_in_the_fingerprint() -> None:
    assert "length.argument(3, 6)" in Templates().sources["socrasynth/opening"]
    whole, half = RoleBinding(max_tokens=2000), RoleBinding(max_tokens=1000)
    assert len({fingerprint(opening(5), whole, "00"), fingerprint(opening(10), whole, "00")}) == 2
    assert fingerprint(opening(5), whole, "00") != fingerprint(opening(5), half, "00")
