"""The simulated model's filler: any form or schema gets a reply that fits it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest
from jsonschema import validate
from pydantic import BaseModel, Field
from simulated_calls import PASSAGE, model

from moot.actors.models.reply_schema import reply_schema
from moot.actors.simulated.form import read_form
from moot.protocols.ceda.context_reply import ContextReply
from moot.protocols.ceda.replies import MessageReply
from moot.protocols.crit.replies import Reading
from moot.protocols.evince.side_state import Prediction
from moot.protocols.messages import Decoding, Message
from moot.protocols.replies import Position, Reply, Score
from moot.protocols.reply_parsing import parse_reply
from moot.protocols.socrasynth.replies import Agenda, Amendment, LabelledOpening, LastWord, Speech, WholeComparison

LABELS = ("Yes", "No")
ASKED = f"<passage>\n{PASSAGE}\n</passage>\n<question>\nCan they fly?\n</question>"


class ReplyPart(BaseModel):
    """A part of somebody's own reply."""

    weight: Annotated[int, Field(ge=2, le=5)]


class OwnReply(Reply):
    """A reply that no protocol of ours knows."""

    parts: Annotated[list[ReplyPart], Field(min_length=3, max_length=4)]
    kind: Literal["fact", "guess"]
    certain: bool
    share: Annotated[float, Field(ge=0.2, le=0.4)]
    note: str | None
    name: Annotated[str, Field(min_length=12, max_length=20)] = "not in the form"


@pytest.mark.parametrize("step", ["a", "b", "c"])
@pytest.mark.parametrize(
    "reply",
    [OwnReply, Position, Score, Prediction, MessageReply, ContextReply, Reading, Speech, LastWord, LabelledOpening,
     Amendment, Agenda, WholeComparison],
)  # fmt: skip
def test_a_schema_alone_gets_a_reply_that_fits_it(reply: type[Reply], step: str) -> None:
    schema = msgspec.json.decode(reply_schema(reply, "vllm", LABELS, 4_000).body)
    said = model().reply([Message("user", f"{ASKED}\nSay something.")], Decoding(max_tokens=4_000), step, schema)
    parsed = parse_reply(said.text, reply, LABELS)
    assert parsed.data
    assert not parsed.repaired


def test_a_form_in_the_prompt_alone_gets_one_too() -> None:
    form = (
        '{"parts": [{"weight": ...}], "kind": "fact" | "guess", "certain": ..., "share": ..., "note": "..."}\n'
        '- "weight": a whole number from 2 to 5.\n- "certain": true if it is.\n- "share": between 0.2 and 0.4.'
    )

    class Formed(OwnReply):
        parts: list[ReplyPart]  # how many is not said in the form

    for step in "abcdef":
        said = model().reply([Message("system", form), Message("user", ASKED)], Decoding(max_tokens=900), step)
        parsed = parse_reply(said.text, Formed)
        assert not parsed.repaired
        assert parsed.data["name"] == "not in the form"


def types(schema: Any) -> Iterator[Any]:
    for field in schema["properties"].values():
        yield field.get("type", field.get("enum"))


@pytest.mark.parametrize(("form", "read"), [
    ('{"a": "...", "b": 1 | 0 | null, "c": [...]}', ["string", [1, 0, None], "array"]),
    ('{"a": {"b": true | false}, "c": [{"d": 0.5}]}', ["object", "array"]),
    ('{"a": ...}\n- "a" is a list of texts.', ["array"]),
    ('{"a": ...}\n- a: exactly one of: Yes, No, Not sure.', [["Yes", "No", "Not sure"]]),
    ('{"a": <1 to 3>, "b": <text>}', ["integer", "string"]),
    ('{"a": ..., "my_confidence": ...}\n- "a", in a few words,\n  is free.', ["string", "number"]),
    ('{"a": b{ and then {"c": ...}', ["string"]),
    ('{"a": "..." | null, "b": ["..."] | null, "c": {"d": 1} | null}', ["string", "array", "object"]),
    ('{"a": [...] | [...], "b": ... | ..., "c": "guess" | "..."}', ["array", "string", "string"]),
    ('{"a": ..., "why? ($)": ...}\n- "a": a whole number from 1 to ' + 400 * "9", ["string", "string"]),
])  # fmt: skip
def test_the_schema_of_a_forms_fields(form: str, read: list[Any]) -> None:
    schema = read_form(f"Reply with {form}")
    assert schema is not None
    assert list(types(schema)) == read


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"a"}', '{"a": ', '{"a": [...', "{a: 1}", '{"a": ..., 5: 1}', '{"a": ' * 600, '{"a": ' + "[" * 3_000],
)
def test_what_is_no_form(text: str) -> None:
    assert read_form(text) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}, "minItems": 3},
        {"enum": ["a", "b"]},
        {"anyOf": [{"type": "object", "properties": {"a": {"type": "integer", "maximum": -5}}}]},
    ],
)
def test_a_schema_that_is_no_objects_gets_one_value(schema: dict[str, Any]) -> None:
    said = model().reply([Message("user", "Hello.")], Decoding(max_tokens=300), "step", schema)
    validate(json.loads(said.text), schema)
