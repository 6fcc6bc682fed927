"""JSON as servers really write it: decoded into a struct, with what JSON has no word for made unknown."""

from __future__ import annotations

import json
import math
from typing import TypeVar

import msgspec

from moot.actors.models.interface import ModelError
from moot.actors.models.openai_errors import plain

T = TypeVar("T")

_MINUS_INFINITY = -9999.0


def decode_json(decoder: msgspec.json.Decoder[T], body: bytes, what: str) -> T:
    """The body as the decoder's type; NaN and Infinity become null, -Infinity and its like -9999.

    Args:
        what: what the body should be, for the message.

    Raises:
        ModelError: `server`, for a body that is not JSON or not of that form.
    """
    try:
        return decoder.decode(body)
    except (ValueError, RecursionError):
        pass
    try:
        return decoder.decode(strict_json(body))
    except msgspec.ValidationError as error:
        raise ModelError("server", plain(f"the reply is not {what}: {error}")) from None
    except (ValueError, RecursionError) as error:
        message = f"the reply is not JSON ({type(error).__name__}, {len(body)} bytes)"
        raise ModelError("server", plain(message)) from None


def strict_json(body: bytes) -> bytes:
    """The body without what some servers write and JSON has no word for: NaN, Infinity, lone surrogates."""
    data = json.loads(
        body.decode("utf-8", "replace"),
        parse_constant={"-Infinity": _MINUS_INFINITY}.get,
        parse_float=_finite,
        parse_int=_finite,
    )
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")


def _finite(digits: str) -> float | int | None:
    number = float(digits)
    if not math.isfinite(number):
        return None if number > 0 else _MINUS_INFINITY
    return int(digits) if digits.lstrip("-").isdigit() and abs(number) < 2**53 else number
