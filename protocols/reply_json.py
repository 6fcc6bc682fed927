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
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import json_repair
import msgspec
from pydantic import BaseModel, ValidationError

from moot.protocols.reply_limits import CASE_LABEL
from moot.protocols.text.latex_escapes import mend_escapes
from moot.protocols.validation_messages import explain_error

MENDED, SEVERAL = "mended", "several"
"""Marks of a reading: JSON or its LaTeX was repaired; several objects fitted and were equal."""


class InvalidReply(ValueError):
    """A reply that does not fit its model even after repair; the message may be shown to the model.

    Args:
        message: text for the model; its wording is stable, so that records with it can be replayed.
        plain: text for people; empty where it equals the message.
    """

    def __init__(self, message: str, plain: str = "") -> None:
        super().__init__(message, plain)
        self.plain = plain or message

    def __str__(self) -> str:
        return str(self.args[0])


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
    plain = getattr(model, "plain_text_is", "")
    if plain and not _OBJECT.search(text):
        return JsonReading({plain: text}, _validated({plain: text}, model))
    body = text.strip()
    try:
        value = _decoded(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _embedded(text, model, strict=False)
    if isinstance(value, str) and "{" in value:  # JSON encoded twice
        inner = read_object(value, model)
        return JsonReading(inner.value, inner.validated, True, inner.readings)
    if not isinstance(value, dict):
        if not _OBJECT.search(body):
            raise InvalidReply("the reply is not a JSON object")
        return _embedded(text, model, strict=False)
    if _is_as_written(body, value):
        try:
            return JsonReading(value, model.model_validate(value), span=(start := text.index("{"), start + len(body)))
        except ValueError:
            pass
    return _embedded(text, model, strict=True)


def answer_start(text: str, model: type[BaseModel], field: str = "answer") -> int | None:
    """Offset of the first character of a field's value, behind its quote, in the object that `read_object` reads.

    None when no object fits, or the place is not certain.

    >>> from moot.protocols.replies import Score
    >>> answer_start('{"score": 2} then {"support": "contradicted", "score": 1}', Score, "score")
    55
    """
    try:
        span = read_object(text, model).span
    except InvalidReply:
        return None
    if span is None:
        return None
    places = [token.end() for depth, token in _tokens(text, *span) if depth == 1 and token[0] == f'"{field}"']
    values = [found.end() for place in places if (found := _VALUE.match(text, place))]
    return values[0] if len(values) == 1 else None


def refuse_control_characters(answer: str) -> None:
    """Raises `InvalidReply` for an answer with a control character other than a tab or a line feed: a mangled one."""
    if _CONTROL.search(answer):
        raise InvalidReply(f"`answer` has a control character: {answer[:80]!r}. Write each backslash twice in JSON")


_decoded = msgspec.json.Decoder().decode
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OBJECT = re.compile(r"""\{(?=\s*+(?:["'}]|\w++\s*+:))""")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}]', re.DOTALL)
_VALUE = re.compile(r'\s*:\s*"?')

_MOST_MENDED = 2**14
"""Most characters of a reply to repair: a longer one that is no JSON is asked for again."""

_MOST_LEVELS = 100
"""Most open brackets of a reply to repair: no reply type has ten, and repairing thousands takes a long time."""

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


def _embedded(text: str, model: type[BaseModel], *, strict: bool) -> JsonReading:
    """Object among other text, or one that is not as it was meant.

    Args:
        strict: whether the whole text is one JSON object.
    """
    fits, errors, open_at = _candidates(text, model)
    torn = [start for start in open_at if _first_key(model).match(text, start)]
    if not fits and open_at:
        start = (torn or open_at)[0]
        fits, torn = [_fit(text, start, len(text), model, torn=True)], []
    if not fits:
        raise errors[0] if errors else _unlike_any(text, model)
    first = fits[0]
    if first.twice:
        raise InvalidReply(f"the reply gives `{first.twice[0][:80]}` several times, with different values")
    if torn or any(
        each.validated != first.validated and repr(each.validated) != repr(first.validated) for each in fits
    ):
        raise InvalidReply("the reply holds several JSON objects that fit and differ: reply with one object only")
    mended = any(each.mended for each in fits)
    marks = (*[MENDED] * mended, *[SEVERAL] * (len(fits) > 1))
    whole = strict and not mended and not text[: first.start].strip()
    span = (first.start, first.end) if len(fits) == 1 else None
    return JsonReading(first.value, first.validated, not whole, marks, span)


def _candidates(text: str, model: type[BaseModel]) -> tuple[list[_Fit], list[InvalidReply], list[int]]:
    """Objects that fit; errors of those that do not; starts of those that never close."""
    fits, errors, open_at = list[_Fit](), list[InvalidReply](), list[int]()
    at, left = 0, _MOST_PASSES * len(text)
    while found := _OBJECT.search(text, at):
        start = found.start()
        end = _closing(text, start)
        left -= (end or len(text)) - start
        if left < 0:
            raise _too_deep()
        at = start + 1
        if end is None:
            open_at.append(start)
        elif _any_key(model).search(text, start, end) or not text[start + 1 : end - 1].strip():
            try:
                fits.append(_fit(text, start, end, model))
                at = end
            except InvalidReply as error:
                errors.append(error)
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


def _closing(text: str, start: int) -> int | None:
    """End of the object that begins at `start`; None when it never closes."""
    return next(
        (token.end() for depth, token in _tokens(text, start, len(text)) if not depth and token[0] == "}"), None
    )


@lru_cache(maxsize=256)
def _any_key(model: type[BaseModel]) -> re.Pattern[str]:
    return re.compile(rf"""\b(?:{"|".join(map(re.escape, model.model_fields))})["']?\s*+:""")


@lru_cache(maxsize=256)
def _first_key(model: type[BaseModel]) -> re.Pattern[str]:
    return re.compile(rf"""\{{\s*+["']?{_any_key(model).pattern}""")


def _fit(text: str, start: int, end: int, model: type[BaseModel], *, torn: bool = False) -> _Fit:
    value, mended, twice = _decode(text[start:end], model, torn=torn)
    validated = _validated(value, model)
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
            value, mended = _repaired(escaped, model, torn=torn), True
            twice = _lost_keys(escaped, value)
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise InvalidReply("the reply holds half of a surrogate pair, which is not Unicode text") from None
    except RecursionError:
        raise _too_deep() from None
    return value, mended, twice


_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_BARE_NUMBER = re.compile(r'"(?:[^"\\]++|\\.)*+"?|(?<=:)(?P<blank>\s*+)(?P<number>[-+.\d][-+.,/%\deE]*+)', re.DOTALL)
_NUMBERS = "-+0123456789.eE"
_TORN_VALUE = re.compile(
    r"""(["'])(?P<key>\w++)\1\s*+:\s*+(?:"(?:[^"\\]++|\\.)*+\\?|'(?:[^'\\]++|\\.)*+\\?|[^\s"'\[{,}\]][^"',}\]]*+)\Z""",
    re.DOTALL,
)


def _repaired(body: str, model: type[BaseModel], *, torn: bool) -> Any:
    """Value of what is no JSON, without the value that it was torn in unless that is prose."""
    if len(body) > _MOST_MENDED:
        raise InvalidReply(f"the reply is no JSON, and too long to be mended: {len(body):,} characters")
    if _levels(body) > _MOST_LEVELS:
        raise _too_deep()
    if torn:
        body = _without_torn_value(body.rstrip(), model)
    # json_repair would read 5% as 5, and 007 as 7
    body = _BARE_NUMBER.sub(_as_text, body)
    try:
        return json_repair.loads(body)
    except ValueError as error:
        raise InvalidReply(f"the reply is no JSON that can be mended: {error}") from None


def _without_torn_value(body: str, model: type[BaseModel]) -> str:
    """A number at the torn end may have lost digits, and a label words: the field is missing, not wrong."""
    whole = body.rstrip(_NUMBERS)
    if not body[len(whole) :].isalpha():
        body = whole
    torn = _TORN_VALUE.search(body)
    return body if torn is None or _is_prose(model, torn["key"]) else body[: torn.start()]


def _is_prose(model: type[BaseModel], key: str) -> bool:
    field = model.model_fields.get(key)
    if field is None:
        return key not in ("answer", "label")
    extra = field.json_schema_extra
    return field.annotation is str and key != "answer" and not (isinstance(extra, dict) and CASE_LABEL in extra)


def _as_text(found: re.Match[str]) -> str:
    if found["number"] is None:
        return found[0]
    number = found["number"].rstrip(",")
    after = found["number"][len(number) :]
    return found[0] if _NUMBER.fullmatch(number) else f'{found["blank"]}"{number}"{after}'


def _lost_keys(body: str, value: Any) -> list[str]:
    """Keys that are written more often than a repaired value has them."""
    keys = value if isinstance(value, dict) else {}
    return [
        key for key in keys if len(re.findall(rf"""(?<!\\)["']{re.escape(key)}["']\s*+:""", body)) > _count(value, key)
    ]


def _count(value: Any, key: str) -> int:
    if isinstance(value, dict):
        return (key in value) + sum(_count(each, key) for each in value.values())
    return sum(_count(each, key) for each in value) if isinstance(value, list) else 0


def _levels(body: str) -> int:
    """Most brackets open at once; those inside texts count too."""
    if sum(map(body.count, "([{")) <= _MOST_LEVELS:
        return 0
    steps = (1 if char in "([{" else -1 for char in body if char in "([{}])")
    return max(accumulate(steps), default=0)


def _validated(value: Any, model: type[BaseModel]) -> BaseModel:
    if not isinstance(value, dict):
        raise InvalidReply("the reply is not a JSON object")
    try:
        return model.model_validate(value)
    except ValueError as error:
        raise _misfit(error) from error


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


def _too_deep() -> InvalidReply:
    return InvalidReply("the reply is nested too deeply")


def _misfit(error: ValueError) -> InvalidReply:
    if not isinstance(error, ValidationError):
        return InvalidReply(f"the reply does not fit: {error}")
    found = error.errors(include_url=False)[:3]
    wording, plain = (
        "; ".join(f"`{'.'.join(map(str, each['loc']))}`: {explain(each)}" for each in found)
        for explain in (lambda each: each["msg"], explain_error)
    )
    return InvalidReply(f"the reply does not fit: {wording}", f"the reply does not fit: {plain}")
