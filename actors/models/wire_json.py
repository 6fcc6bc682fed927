"""Lenient JSON decoder of servers' responses: what does not fit is unknown, and the rest is kept."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from moot.actors.models.openai_errors import UnexpectedResponse, plain

T = TypeVar("T")

_MINUS_INFINITY = -9999.0
_END_MARK = re.compile(r"\s*(?:data:\s*\[DONE\]\s*)?")
"""What may follow the JSON of a body: some servers write a stream's end mark behind a reply in one piece."""


def decode_json(decoder: msgspec.json.Decoder[T], body: bytes, what: str) -> T:
    """Decodes a JSON body; NaN and Infinity become null, -Infinity becomes -9999.

    A field that does not fit its type gets its default, so that a reply is not lost for an optional part; see
    `as_far_as_it_fits`.

    Args:
        what: expected content of the body, for the message.

    Raises:
        UnexpectedResponse: the body is not JSON or not of that form.
    """
    try:
        return decoder.decode(body)
    except (ValueError, RecursionError):
        pass
    try:
        data = _any_json(body)
    except (ValueError, RecursionError) as error:
        start = body.lstrip()[:6]
        found = "a web page, " if start[:1] == b"<" else "a stream, " if start in (b"event:", b"data: ") else ""
        message = f"the reply is {found}not JSON ({type(error).__name__}, {len(body)} bytes)"
        raise UnexpectedResponse("server", plain(message)) from None
    try:
        return as_far_as_it_fits(data, decoder.type)  # type: ignore[no-any-return]
    except (msgspec.ValidationError, RecursionError) as error:
        raise UnexpectedResponse("server", plain(f"the reply is not {what}: {error}")) from None


def _any_json(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return msgspec.json.decode(strict_json(body))


def as_far_as_it_fits(data: object, kind: Any) -> Any:
    """Converts decoded JSON to a type of structs, lists and unions, without the parts that do not fit.

    A struct's field that does not fit gets its default. A list's item that does not fit is an empty struct, or is left
    out where a struct must have some field.

    Raises:
        msgspec.ValidationError: a required field does not fit, or no item of a list does.
    """
    if kind is msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(data))
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        if get_origin(kind) in (Union, UnionType):
            for each in get_args(kind):
                with suppress(msgspec.ValidationError):
                    return as_far_as_it_fits(data, each)
        elif get_origin(kind) is list and isinstance(data, list):
            if items := list(_items(data, get_args(kind)[0])):
                return items
        elif isinstance(data, dict) and _is_struct(kind):
            return kind(**dict(_fields(data, kind)))
        raise


def _items(data: list[object], kind: Any) -> Iterator[Any]:
    for item in data:
        try:
            yield as_far_as_it_fits(item, kind)
        except msgspec.ValidationError:
            if _is_struct(kind) and not any(field.required for field in msgspec.structs.fields(kind)):
                yield kind()


def _fields(data: dict[str, object], kind: Any) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(kind):
        if field.encode_name in data or field.required:
            try:
                yield field.name, as_far_as_it_fits(data.get(field.encode_name), field.type)
            except msgspec.ValidationError:
                if field.required:
                    raise


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def strict_json(body: bytes) -> bytes:
    """Strict JSON from lenient: NaN, Infinity and lone surrogates, which some servers write, are replaced; a byte order
    mark and a stream's end mark are left out.

    Raises:
        ValueError: the body is not JSON.
    """
    text = body.decode("utf-8-sig", "replace")
    start = len(text) - len(text.lstrip())
    data, end = _lenient.raw_decode(text, start)
    if not _END_MARK.fullmatch(text, end):
        raise json.JSONDecodeError("extra data", text[end : end + 99], 0)
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")


def _finite(digits: str) -> float | int | None:
    number = float(digits)
    if not math.isfinite(number):
        return None if number > 0 else _MINUS_INFINITY
    return int(digits) if digits.lstrip("-").isdigit() and abs(number) < 2**53 else number


_lenient = json.JSONDecoder(parse_constant={"-Infinity": _MINUS_INFINITY}.get, parse_float=_finite, parse_int=_finite)


_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\.)*+(?P<end>"?)|[\[\]{}]', re.DOTALL)
_TORN_CHARACTER = re.compile(rb"(?<!\\)((?:\\\\)*+)(?:\\(?:u[0-9a-fA-F]{0,3})?|[\xc0-\xff][\x80-\xbf]{0,2})\Z")
_CLOSING = dict(zip(b"[{", b"]}", strict=True))
_QUOTE = ord('"')
_MOST_BLANKS = 64
"""Bytes before a text in which its colon is searched for."""

_ENDED = b'data: {"choices":[{"finish_reason":"length"}]}\n\n'
"""Event of a stream that ended at its length limit."""


def closed_body(body: bytes) -> bytes:
    """Completes the beginning of a body, of which the rest was not received.

    JSON is closed behind its last text, object or list; a text in which it ends is closed, too. The whole events of a
    stream are followed by one that states the length limit.

    >>> closed_body(b'{"choices":[{"message":{"content":"It rai')
    b'{"choices":[{"message":{"content":"It rai"}}]}'
    >>> closed_body(b'{"tokens":[{"token":"It"},{"tok')
    b'{"tokens":[{"token":"It"}]}'
    """
    if body.lstrip()[:1] not in (b"{", b"["):
        events, blank_line, _ = body.replace(b"\r\n", b"\n").rpartition(b"\n\n")
        return events + blank_line + _ENDED
    still_open, end, left_open = bytearray(), 0, b""
    for found in _STRUCTURE.finditer(body):
        first = body[found.start()]
        if first in _CLOSING:
            still_open.append(first)
            continue
        if first != _QUOTE:
            del still_open[-1:]
        elif not _is_value(body, found.start(), still_open):
            continue
        elif not found["end"]:
            text = _TORN_CHARACTER.sub(rb"\1", found[0])
            return body[: found.start()] + text + b'"' + _closing(still_open)
        end, left_open = found.end(), bytes(still_open)
    return body[:end] + _closing(left_open)


def _closing(left_open: bytes | bytearray) -> bytes:
    return bytes(_CLOSING[bracket] for bracket in reversed(left_open))


def _is_value(body: bytes, start: int, still_open: bytearray) -> bool:
    """Whether a text in JSON is a value, and not a key."""
    return still_open[-1:] == b"[" or body[max(0, start - _MOST_BLANKS) : start].rstrip()[-1:] == b":"
