"""Form filler: generates the fields of a reply's schema that have no drawn signal, by name, type and bounds.

Values with a planted signal are drawn elsewhere, as `DraftSignals`; all others are generated here, so that an unknown
form gets a valid reply too. Texts cite the prompt's material, in the register of its contentiousness.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moot.actors.simulated.turn import DraftSignals, ReplyDraft, SimulatedTurn, json_draft
from moot.actors.simulated.words import draw_reasoning

_LONG = frozenset({"reasoning", "argument", "arguments", "rebuttals", "statement", "addition"})
"""Fields of `reasoning_words` words; other texts have half as many."""

_ITEMS = 2
_PAD = " and so on"


def fill(turn: SimulatedTurn, schema: Mapping[str, Any], signals: DraftSignals) -> ReplyDraft:
    """Fills a schema: each field by its signal or, without one, by its type, in the schema's order.

    A schema of another type than object gets one value.
    """
    if "properties" not in schema:
        return ReplyDraft(json.dumps(value_of("", schema, turn, signals.about), ensure_ascii=False))
    values = {
        key: signals.values[key] if key in signals.values else value_of(key, field, turn, signals.about)
        for key, field in schema["properties"].items()
    }
    return json_draft({key: value for key, value in values.items() if value is not ...}, signals)


def value_of(key: str, schema: Mapping[str, Any], turn: SimulatedTurn, about: str, topic: int = 0) -> object:
    """Generates a value that fits the schema of a field.

    A list whose items have a `topic` gets one item per tag `topic` of the prompt, any other list two, within its
    bounds. An answer or label is one of the prompt's labels, if any. Numbers are uniform between their bounds, by
    default 0 and 1.

    Args:
        key: the field's name.
        about: position that a text argues for.
        topic: number of the field's topic, counted from 1; 0 for none.
    """
    if "enum" in schema:
        return turn.pick(schema["enum"])
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return value_of(key, schema["anyOf"][0], turn, about, topic)
    if key == "topic" and topic:
        return topic
    match schema.get("type"):
        case "object":
            parts = schema.get("properties", {}).items()
            return {name: value_of(name, part, turn, about, topic) for name, part in parts}
        case "array":
            return _items(key, schema, turn, about, topic)
        case "number" | "integer":
            return _number(schema, turn)
        case "boolean":
            return turn.random.random() < 0.5
        case "null":
            return None
    if key in ("answer", "label") and turn.prompt.labels:
        return turn.pick(turn.prompt.labels)
    return "0" if "pattern" in schema else _text(key, schema, turn, about, topic)


def _items(key: str, schema: Mapping[str, Any], turn: SimulatedTurn, about: str, topic: int) -> list[object]:
    items, topics = schema.get("items", {}), len(turn.prompt.tagged("topic"))
    by_topic = "topic" in items.get("properties", {})
    wanted = topics if by_topic and topics else _ITEMS
    count = max(schema.get("minItems", 0), min(schema.get("maxItems", wanted), wanted))
    return [value_of(key, items, turn, about, place + 1 if by_topic else topic) for place in range(count)]


def _number(schema: Mapping[str, Any], turn: SimulatedTurn) -> float:
    lowest = float(schema.get("minimum", min(0, schema.get("maximum", 0))))
    highest = max(lowest, float(schema.get("maximum", max(1.0, lowest))))
    drawn = turn.random.random()
    if schema["type"] == "integer":
        return int(lowest) + int(drawn * (int(highest) - int(lowest) + 1))
    return round(lowest + drawn * (highest - lowest), 2)


def _text(key: str, schema: Mapping[str, Any], turn: SimulatedTurn, about: str, topic: int) -> str:
    words, least, most = turn.settings.reasoning_words, int(schema.get("minLength", 0)), schema.get("maxLength")
    titles = [fence.attributes.get("title", "") for fence in turn.prompt.tagged("topic")]
    named = f"On {titles[topic - 1].lower()} that is what counts." if 0 < topic <= len(titles) else ""
    text = draw_reasoning(turn, about).written(words if key in _LONG else max(1, words // 2), named)
    if most is not None and len(text) > int(most):
        text = text[: int(most)].rpartition(" ")[0] or text[: int(most)]
    return text + (_PAD * least)[: max(0, least - len(text))]
