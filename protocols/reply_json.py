"""JSON reader of replies: the one object in a text that fits a reply's model, whatever stands around it.

A text that is one JSON object, as most are, is decoded at once. In any other, every object is a candidate, and an
object inside another one only where the outer one does not fit. One that fits is the reply; several that differ are
none, as a draft or a quotation may stand before the reply or after it. What is no JSON is repaired, and validated like
the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from pydantic import BaseModel

from moot.protocols.reply_repair import MOST_LEVELS, lost_keys, repaired, too_deep
from moot.protocols.text.latex_escapes import mend_escapes
from moot.protocols.validation_messages import InvalidReply, misfit

MENDED, SEVERAL = "mended", "several"
"""Marks of a reading: JSON or its LaTeX was repaired; several objects fitted and were equal."""


class JsonReading(NamedTuple):
    """Object that was read from a reply.

    Attributes:
        value: the object as decoded.
        validated: the reply.
        repaired: whether the text was anything but this object as strict JSON.
        readings: marks of a lenient reading, of `MENDED` and `SEVERAL`.
        span: start and end of the object in the text; None where it is not in it as such, or several times.
    """

    value: dict[str, Any]
    validated: BaseModel
    repaired: bool = False
    readings: tuple[str, ...] = ()
    span: tuple[int, int] | None = None


def read_object(text: str, model: type[BaseModel]) -> JsonReading:
    """Reads the JSON object of a reply.

    Raises:
        InvalidReply: no object fits, or several that differ.
    """
    try:
        return _read(text, model)
    except RecursionError:
        raise too_deep() from None


def _read(text: str, model: type[BaseModel]) -> JsonReading:
    plain = getattr(model, "plain_text_is", "")
    if plain and not _OBJECT.search(text):
        return JsonReading({plain: text}, _validated({plain: text}, model))
    body = text.strip()
    try:
        value = _decoded(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _embedded(text, model)
    if isinstance(value, str) and "{" in value:  # JSON encoded twice
        inner = _read(value, model)
        return JsonReading(inner.value, inner.validated, True, inner.readings)
    if not isinstance(value, dict):
        if not _OBJECT.search(body):
            raise InvalidReply("the reply is not a JSON object")
        return _embedded(text, model)
    start = text.index("{")
    if not _is_as_written(body, value):
        return _embedded(text, model, whole=True)
    try:
        return JsonReading(value, model.model_validate(value), span=(start, start + len(body)))
    except ValueError as error:
        if not _has_object(list(value.values())) or _has_all(value, model):
            raise misfit(error) from error
        return _embedded(text, model, start + 1, misfit(error))


def answer_start(text: str, model: type[BaseModel], field: str = "answer") -> int | None:
    """Offset of the first character of a field's value, behind its quote, in the object that `read_object` reads.

    None when no object fits, or the place is not certain.

    >>> from moot.protocols.replies import Score
    >>> answer_start('{"score": 2} then {"support": "contradicted", "score": 1}', Score, "score")
    55
    """
    try:
        read = read_object(text, model)
    except InvalidReply:
        return None
    if read.span is None:
        return None
    places = [token.end() for depth, token in _tokens(text, *read.span) if depth == 1 and token[0] == f'"{field}"']
    values = [found.end() for place in places if (found := _VALUE.match(text, place))]
    misplaced = MENDED in read.readings and not text.startswith(str(read.value.get(field)), *values[:1])
    return values[0] if len(values) == 1 and not misplaced else None


def refuse_control_characters(answer: str) -> None:
    """Raises `InvalidReply` for an answer with a control character other than a tab or a line feed: a mangled one."""
    if _CONTROL.search(answer):
        raise InvalidReply(f"`answer` has a control character: {answer[:80]!r}. Write each backslash twice in JSON")


_lenient = json.JSONDecoder(strict=False)
_decoded = msgspec.json.Decoder().decode
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_QUOTE = "[\"'\u2018\u2019\u201c\u201d]"
_OBJECT = re.compile(rf"\{{(?=\s*+(?:}}|{_QUOTE}|\w++\s*+:))")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}]', re.DOTALL)
_VALUE = re.compile(r'\s*:\s*"?')

_MOST_PASSES = 32
"""Most often that the characters of a reply are looked at in search of its object."""


class _Fit(NamedTuple):
    start: int
    end: int
    value: dict[str, Any]
    validated: BaseModel
    mended: bool
    twice: tuple[str, ...]


def _is_as_written(body: str, value: dict[str, Any]) -> bool:
    """Whether a decoded object has every key that was written, and no command of LaTeX became a control character.

    Quotes are counted: each text has two, and a key that is there twice is decoded once.
    """
    quotes = body.count('"')
    if "\\" in body:
        if mend_escapes(body) is not body:
            return False
        quotes -= body.count('\\"')
    return quotes == 2 * _texts(value)


def _texts(value: Any) -> int:
    """Number of texts in decoded JSON, keys included."""
    kind = type(value)
    if kind is str:
        return 1
    if kind is dict:
        return len(value) + sum([1 if type(each) is str else _texts(each) for each in value.values()])
    return sum(map(_texts, value)) if kind is list else 0


def _has_object(values: list[Any]) -> bool:
    """Whether an object is among decoded values, or inside their lists."""
    return any(isinstance(each, dict) or (isinstance(each, list) and _has_object(each)) for each in values)


def _embedded(
    text: str, model: type[BaseModel], at: int = 0, *misfits: InvalidReply, whole: bool = False
) -> JsonReading:
    """Object among other text, or inside another object, or one that is not as it was meant.

    Args:
        at: offset from which it is searched for.
        misfits: errors of the objects before.
        whole: whether the whole text is one JSON object.
    """
    fits, errors, open_at = _candidates(text, model, at)
    errors = [*misfits, *errors]
    torn = [start for start in open_at if _first_key(model).match(text, start)]
    if not fits and open_at:
        start = (torn or open_at)[0]
        fits, torn = [_fit(text, start, len(text), model, torn=True)], []
    if not fits:
        raise errors[0] if errors else _unlike_any(text, model)
    first = fits[0]
    for key in (key for each in fits for key in each.twice):
        raise InvalidReply(f"the reply gives `{key[:80]}` several times, with different values")
    if torn or any(
        each.validated != first.validated and repr(each.validated) != repr(first.validated) for each in fits
    ):
        raise _several()
    mended = any(each.mended for each in fits)
    marks = (*[MENDED] * mended, *[SEVERAL] * (len(fits) > 1))
    repaired = mended or not whole or bool(text[: first.start].strip())
    span = (first.start, first.end) if len(fits) == 1 else None
    return JsonReading(first.value, first.validated, repaired, marks, span)


def _candidates(text: str, model: type[BaseModel], at: int) -> tuple[list[_Fit], list[InvalidReply], list[int]]:
    """Objects that fit; errors of those that do not; starts of those that never close."""
    fits, errors, open_at = list[_Fit](), list[InvalidReply](), list[int]()
    inside = len(text) if at else 0  # an object that does not fit reaches up to here
    broken = 0  # and so does one that is no JSON, but begins like the reply
    left = _MOST_PASSES * len(text)
    while found := _OBJECT.search(text, at):
        start = found.start()
        end, is_json = _closing(text, start)
        left -= (end or len(text)) - start
        if left < 0:
            raise too_deep()
        at = start + 1
        if end is None:
            open_at += [start] if start >= inside else []
        elif _any_key(model).search(text, start, end) or not text[start + 1 : end - 1].strip():
            try:
                fits.append(_fit(text, start, end, model))
                if fits[-1].twice:
                    break  # no reply, whatever follows
                at = end
            except InvalidReply as error:
                errors.append(error)
                inside = max(inside, end)
                if is_json and _has_all(_lenient.raw_decode(text, start)[0], model):
                    at = end  # the reply itself: an object inside it is part of a field
                if not is_json and _first_key(model).match(text, start):
                    broken = max(broken, end)
                continue
            if start < broken:
                raise _several()
        else:
            at = end
    return fits, errors, open_at


def _tokens(text: str, start: int, end: int) -> Iterator[tuple[int, re.Match[str]]]:
    """Texts and brackets of objects from an opening bracket on, each with the number of open brackets around it."""
    depth = 0
    for token in _TOKEN.finditer(text, start, end):
        depth -= token[0] == "}"
        yield depth, token
        depth += token[0] == "{"


def _closing(text: str, start: int) -> tuple[int | None, bool]:
    """End of the object that begins at `start`, and whether it is JSON; None when it never closes."""
    with suppress(ValueError, RecursionError):
        return _lenient.raw_decode(text, start)[1], True
    depth = 0
    for depth, token in _tokens(text, start, len(text)):
        if not depth and token[0] == "}":
            return token.end(), False
    if depth > MOST_LEVELS:
        raise too_deep()
    return None, False


def _several() -> InvalidReply:
    return InvalidReply("the reply holds several JSON objects that fit and differ: reply with one object only")


def _has_all(value: dict[str, Any], model: type[BaseModel]) -> bool:
    """Whether an object has the fields that a reply must have, though they do not fit."""
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    return bool(required) and all(name in value for name in required)


@lru_cache(maxsize=256)
def _any_key(model: type[BaseModel]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, model.model_fields))}){_QUOTE}?\s*+:")


@lru_cache(maxsize=256)
def _first_key(model: type[BaseModel]) -> re.Pattern[str]:
    return re.compile(rf"\{{\s*+{_QUOTE}?{_any_key(model).pattern}")


def _fit(text: str, start: int, end: int, model: type[BaseModel], *, torn: bool = False) -> _Fit:
    value, mended, twice = _decode(text[start:end], model, torn=torn)
    validated = _validated(value, model)
    if mended and end < len(text):
        twice = [*twice, *lost_keys(text[start:], value)]
    decisive = tuple(key for key in twice if key in model.model_fields or key not in value)
    return _Fit(start, end, value, validated, mended, decisive)


def _decode(body: str, model: type[BaseModel], *, torn: bool) -> tuple[Any, bool, list[str]]:
    """Value, whether it was mended, and the keys that one object of it gives several times with different values."""
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            twice.extend(key for key, given in pairs if given != value[key])
        return value

    escaped = mend_escapes(body)
    mended = escaped is not body
    try:
        try:
            value = json.loads(escaped, strict=False, object_pairs_hook=once)
        except ValueError:
            value, mended = repaired(escaped, model, torn=torn), True
            twice = lost_keys(escaped, value)
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise InvalidReply("the reply holds half of a surrogate pair, which is not Unicode text") from None
    except RecursionError:
        raise too_deep() from None
    return value, mended, twice


def _validated(value: Any, model: type[BaseModel]) -> BaseModel:
    if not isinstance(value, dict):
        raise InvalidReply("the reply is not a JSON object")
    try:
        return model.model_validate(value)
    except ValueError as error:
        raise misfit(error) from error


def _unlike_any(text: str, model: type[BaseModel]) -> InvalidReply:
    """Error of a text in which no object has a key of the model."""
    start = text.find("{")
    if start < 0:
        return InvalidReply("the reply holds no JSON object")
    try:
        _fit(text, start, len(text), model, torn=True)
    except InvalidReply as error:
        return error
    return InvalidReply("the reply holds no JSON object")
