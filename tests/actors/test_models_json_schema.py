"""JSON schemas of replies, as vendors take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import anthropic
import pytest
from pydantic import BaseModel, Field

from moot.actors.models.schema_dialects import json_schema
from moot.protocols.errors import ConfigError
from moot.protocols.evince.protocol import FollowUps
from moot.protocols.evince.standing import Estimate, Prediction
from moot.protocols.replies import Position, Score

TAKEN = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "description"}


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


def objects(schema: Any, keyword: str = "") -> Iterator[dict[str, Any]]:
    """Every schema in a schema."""
    if isinstance(schema, dict):
        if keyword != "properties":
            yield schema
        for key, part in schema.items():
            yield from objects(part, "" if keyword == "properties" else key)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def test_a_position() -> None:
    assert json_schema(Position) == {
        "type": "object",
        "properties": {
            "answer": {"type": "string"},
            "reasoning": {"type": "string"},
            "confidence": {"type": "number"},
        },
        "required": ["answer", "reasoning", "confidence"],
        "additionalProperties": False,
    }
    assert list(json_schema(Position)["properties"]) == ["answer", "reasoning", "confidence"]


@pytest.mark.parametrize("model", [Position, Score, Estimate, Prediction, FollowUps, Piece, Everything])
def test_only_what_vendors_take(model: type[BaseModel]) -> None:
    schema = json_schema(model)
    for found in objects(schema):
        assert set(found) <= TAKEN
        if found.get("type") == "object":
            assert found["additionalProperties"] is False
            assert found["required"] == list(found["properties"])
    assert list(schema["properties"]) == list(model.model_fields)


@pytest.mark.parametrize("model", [Position, Score, Estimate, Prediction, FollowUps, Piece, Everything])
def test_the_official_sdk_has_nothing_to_take_out(model: type[BaseModel]) -> None:
    schema = json_schema(model)
    shown = anthropic.transform_schema(schema)
    for ours, theirs in zip(objects(schema), objects(shown), strict=True):
        assert set(ours) - {"type"} == set(theirs) - {"type"}, "a keyword was moved into the description"
        assert ours.get("description") == theirs.get("description")


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
