"""The schema of an ask: labels, bounds that fit the reply's tokens, and what each server's dialect takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field
from schema_asks import LABELS, asked

from moot.actors.agent.request_fingerprint import constrained_schema
from moot.actors.agent.roles import RoleBinding
from moot.actors.models.interface import ReplySchema
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.reply_schema import CHARACTERS_PER_TOKEN, longest_reply, reply_schema, slot_sizes
from moot.actors.models.schema_dialects import DIALECTS, DialectName, json_schema
from moot.actors.models.token_bounds import bytes_per_character
from moot.protocols.crit.replies import Reading
from moot.protocols.errors import ConfigError
from moot.protocols.registry import make_protocol
from moot.protocols.replies import Position, ReasonedPosition, Score
from moot.protocols.socrasynth.replies import Closing, LabelledAmendment, Speech

ENFORCING: tuple[DialectName, ...] = ("llama.cpp", "ollama", "vllm", "sglang", "llguidance")
COMMON = {"type", "description", "enum", "anyOf", "properties", "required", "additionalProperties", "items"}
ALL_BOUNDS = {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern"}


ASKED = [pytest.param(reply, tokens, id=name) for name, reply, tokens in asked()]


def body(schema: ReplySchema) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(schema.body)
    return found


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema."""
    yield schema
    for part in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        yield from parts(part)
    if "items" in schema:
        yield from parts(schema["items"])


@pytest.mark.parametrize(("reply", "tokens"), ASKED)
@pytest.mark.parametrize("dialect", ENFORCING)
def test_the_longest_reply_that_is_permitted_fits_its_tokens(
    reply: type[BaseModel], tokens: int, dialect: DialectName
) -> None:
    for max_tokens in (tokens, tokens // 2):
        found = body(reply_schema(reply, dialect, LABELS, max_tokens))
        bounded = [part for part in parts(found) if part.get("type") in ("string", "array") and "enum" not in part]
        assert all({"maxLength", "maxItems", "pattern"} & part.keys() for part in bounded)
    full = body(reply_schema(reply, dialect, LABELS, tokens))
    patterned = [part for part in parts(full) if "pattern" in part]
    for part in patterned:
        part["maxLength"] = 20
    assert longest_reply(full) <= tokens * CHARACTERS_PER_TOKEN


def longest(schema: dict[str, Any], character: str) -> Any:
    """The longest reply that a schema permits, its texts of one character."""
    if "anyOf" in schema:
        return max((longest(member, character) for member in schema["anyOf"]), key=weight)
    if "enum" in schema:
        return max(schema["enum"], key=weight)
    if schema["type"] == "object":
        return {name: longest(part, character) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [longest(schema["items"], character)] * schema["maxItems"]
    if schema["type"] == "string":
        return character * schema.get("maxLength", 20)
    return {"boolean": False, "null": None}.get(schema["type"], 0.123)


def weight(reply: Any) -> float:
    """At most its tokens: one for each byte of another script, and what is Latin at its usual rate."""
    text = json.dumps(reply, ensure_ascii=False, separators=(",", ":"))
    latin = sum(character.isascii() for character in text)
    return latin / CHARACTERS_PER_TOKEN + len(text.encode()) - latin


@pytest.mark.parametrize(("reply", "tokens"), ASKED)
@pytest.mark.parametrize("character", ["я", "س", "字", "😀"])
def test_the_longest_reply_fits_whatever_its_script(reply: type[BaseModel], tokens: int, character: str) -> None:
    if getattr(reply, "length_follows_input", False):
        return
    each = bytes_per_character([character])
    schema = body(reply_schema(reply, "vllm", (character, character * 2), tokens, bytes_each=each))
    assert weight(longest(schema, character)) <= tokens


def test_the_script_of_an_ask_is_that_of_its_texts() -> None:
    def held(*texts: str) -> bytes:
        slots = {"question": texts[0], "peers": [{"said": text} for text in texts[1:]]}
        schema = constrained_schema(
            RoleBinding(profile=ModelProfile(schemas="vllm")), "yes", Position, ("Yes", "No"), 120, slots
        )
        assert schema is not None
        return schema.body

    plain = held("Is it in Beijing, a city of twenty-two million?")
    assert held("Est-ce à Pékin, « une ville » de vingt-deux millions\N{EN DASH}déjà ?", "Oui, ça l\u2019est.") == plain
    assert held("Is it in Beijing (北京), a city of twenty-two million people in the north?") == plain
    assert held("它在北京吗?", "It is, as far as I know") != plain
    assert reply_schema(Position, "vllm", ("Yes", "No"), 120).body == plain


@pytest.mark.parametrize(("reply", "tokens"), ASKED)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_contains_only_supported_keywords(reply: type[BaseModel], tokens: int, dialect: DialectName) -> None:
    """The keywords of each server's documentation; what ours would not read is not permitted either."""
    bounds = {
        "openai": {"minItems", "maxItems", "minimum", "maximum", "pattern"},
        "anthropic": {"minItems"},
        "portable": set(),
    }.get(dialect, ALL_BOUNDS)
    found = body(reply_schema(reply, dialect, LABELS, tokens))
    Draft202012Validator.check_schema(found)
    for part in parts(found):
        assert part.keys() <= COMMON | bounds
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
        if dialect in ("llama.cpp", "ollama", "llguidance") and part.get("type") == "number":
            assert "enum" in part, "bounds of decimal numbers, or of their digits, are not enforced by its grammar"
        if dialect == "anthropic":
            assert part.get("minItems", 0) in (0, 1)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_is_one_of_the_labels(dialect: DialectName) -> None:
    found = body(reply_schema(Position, dialect, LABELS))["properties"]["answer"]
    assert found == {"type": "string", "enum": list(LABELS)}
    free = body(reply_schema(Position, dialect, None))["properties"]["answer"]
    assert "enum" not in free
    long = ("x" * 200, "y")
    written = body(reply_schema(Position, dialect, long, listed_labels=False))["properties"]["answer"]
    assert "enum" not in written
    assert written.get("maxLength", 200) >= 200


def test_too_many_labels_for_a_server_are_left_open() -> None:
    many = tuple(f"diagnosis {number}" for number in range(101))
    assert "enum" not in body(reply_schema(Position, "portable", many))["properties"]["answer"]
    assert "enum" in body(reply_schema(Position, "portable", many[:100]))["properties"]["answer"]
    assert len(body(reply_schema(Position, "vllm", many))["properties"]["answer"]["enum"]) == 101


def test_a_distribution_names_labels_and_has_no_more_entries_than_there_are() -> None:
    evince: Any = make_protocol("evince")
    prediction = evince.replies["agent"][0]
    spread = body(reply_schema(prediction, "llama.cpp", LABELS, 800))["properties"]["distribution"]
    assert spread["maxItems"] == len(LABELS)
    assert spread["items"]["properties"]["label"]["enum"] == list(LABELS)


DECIDES_FIRST = {
    "Position": "`answer_first`: an answer's own probability, which reasoning before it would saturate",
    "Estimate": "`answer_first`: the source asks for the distribution first",
    "Prediction": "`answer_first`: the source asks for the distribution first",
    "Synthesis": "the verdict's confidence is the answer's own probability; what leads to it are both arguments",
    "NumberSynthesis": "as `Synthesis`",
    "ScoreSynthesis": "as `Synthesis`",
    "LabelledOpening": "the answer is the stance that the arguments defend",
    "MessageReply": "the source asks for AGREE or DENY as the first word",
}
"""Reply types in which a decision comes before a text, and why."""


def decides(part: dict[str, Any]) -> bool:
    """Whether a field is a decision: no text and no list of what has a text."""
    if "anyOf" in part:
        return all(map(decides, part["anyOf"]))
    if part.get("type") == "array":
        return decides(part["items"])
    if part.get("type") == "object":
        return all(map(decides, part["properties"].values()))
    return "enum" in part or part["type"] != "string"


def decided_before(schema: dict[str, Any]) -> Iterator[str]:
    """Fields that come before a text of the same object, numbers of topics excepted."""
    for part in parts(schema):
        fields = {name: decides(field) for name, field in part.get("properties", {}).items() if name != "topic"}
        texts = [place for place, is_decision in enumerate(fields.values()) if not is_decision]
        yield from list(fields)[: max(texts, default=0)] if any(list(fields.values())[: max(texts, default=0)]) else ()


@pytest.mark.parametrize(("reply", "tokens"), ASKED)
def test_what_is_argued_comes_before_what_follows_from_it(reply: type[BaseModel], tokens: int) -> None:
    """In every dialect the properties come as the type declares them, and decisions come last."""
    written = list(reply.model_json_schema()["properties"])
    for dialect in (None, *DIALECTS):
        found = body(reply_schema(reply, dialect, LABELS, tokens))
        assert list(found["properties"]) == found["required"] == written
        early = [] if dialect is None else list(decided_before(found))  # a bare schema lists no labels
        assert dialect is None or bool(early) == (reply.__name__ in DECIDES_FIRST), early


@pytest.mark.parametrize(
    ("reply", "order"),
    [
        (Position, ["answer", "reasoning", "confidence"]),
        (ReasonedPosition, ["reasoning", "answer", "confidence"]),
        (Speech, ["arguments", "declined", "finished", "conceded"]),
        (LabelledAmendment, ["points", "questions", "reservations", "consents", "answer"]),
    ],
)
def test_the_order_of_a_reply_is_that_of_its_type(reply: type[BaseModel], order: list[str]) -> None:
    assert list(body(reply_schema(reply, "openai", ("Yes", "No")))["properties"]) == order


def test_the_bare_schema_is_that_of_older_records() -> None:
    assert b"maxLength" not in reply_schema(Score, None).body
    assert reply_schema(Score, None, ("Yes",), 7).body == reply_schema(Score, None).body


def test_a_list_has_as_many_items_as_the_ask_wants() -> None:
    sizes = slot_sizes(Closing, {"topics": ["a", "b"], "question": "Which?"})
    assert sizes == (("topics", 2),)
    statements = body(reply_schema(Closing, "vllm", None, 2000, sizes=sizes))["properties"]["statements"]
    assert (statements["maxItems"], statements["items"]["properties"]["topic"]["maximum"]) == (2, 2)
    reading = body(reply_schema(Reading, "llama.cpp", None, 4000, sizes=(("max_reasons", 12),)))["properties"]
    assert (reading["reasons"]["maxItems"], reading["rivals"]["maxItems"]) == (12, 4)
    assert slot_sizes(Closing, {}) == ()


# A user's reply types


class Piece(BaseModel):
    """A piece of evidence."""

    text: str = Field(min_length=1, max_length=9, pattern="^a")
    weight: float = Field(gt=0, le=1)


class Everything(BaseModel):
    zeta: list[Piece] = Field(min_length=2)
    alpha: str | None = None
    kind: Literal["a", "b"] = "a"
    one: Literal["only"]
    piece: Piece | None = None
    properties: int = Field(ge=0, description="how many")
    sure: bool


class Tree(BaseModel):
    leaves: list[Tree]


class Mapping(BaseModel):
    scores: dict[str, float]


class Anything(BaseModel):
    value: Any


class Nested(BaseModel):
    inner: Anything


def test_only_what_vendors_take() -> None:
    for part in parts(json_schema(Everything)):
        assert part.keys() <= COMMON
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])


def test_references_are_written_out() -> None:
    properties = json_schema(Everything)["properties"]
    piece = properties["zeta"]["items"]
    assert piece["properties"] == {"text": {"type": "string"}, "weight": {"type": "number"}}
    assert piece["description"] == "A piece of evidence."
    assert properties["piece"]["anyOf"] == [piece, {"type": "null"}]
    assert properties["alpha"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert properties["one"]["enum"] == ["only"]
    assert properties["properties"] == {"type": "integer", "description": "how many"}


@pytest.mark.parametrize(
    ("model", "field"), [(Tree, "leaves"), (Mapping, "scores"), (Anything, "value"), (Nested, "inner.value")]
)
def test_what_no_vendor_takes_is_refused_with_its_field(model: type[BaseModel], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        json_schema(model)
    assert f"`{field}` of the reply {model.__name__}" in str(caught.value)
    assert "structured: false" in str(caught.value)
