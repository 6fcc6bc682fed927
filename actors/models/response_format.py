"""A reply model as the OpenAI wire's `response_format`."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec
from pydantic import BaseModel

from moot.actors.models.json_schema import json_schema

_LONGEST_NAME = 64


@lru_cache(maxsize=256)
def response_format(model: type[BaseModel]) -> msgspec.Raw:
    """The JSON that has a server hold its reply to `model`: made once for each model.

    Raises:
        ConfigError: no schema can say what the model wants.
    """
    name = re.sub(r"[^A-Za-z0-9_-]", "_", model.__name__)[:_LONGEST_NAME]
    held = {"name": name, "strict": True, "schema": json_schema(model)}
    return msgspec.Raw(msgspec.json.encode({"type": "json_schema", "json_schema": held}))


def refuses_response_format(message: str) -> bool:
    """Whether a server's 400 is about the `response_format`, going by its words.

    >>> refuses_response_format("Invalid parameter: 'response_format' of type 'json_schema' is not supported")
    True
    """
    said = message.lower()
    return any(word in said for word in ("response_format", "response format", "json_schema", "structured output"))
