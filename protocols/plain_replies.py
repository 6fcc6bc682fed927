"""Plain replies: text in which the answer and each other short field have a line of their own, and the rest is prose.

For models that write no JSON. A field's line is its name, a colon and its value; the answer's may also be any line that
the label reader knows as one, such as "The answer is B". A reply without such a line is read by its first and its last
line. The label reader alone says what a line names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from moot.protocols.replies import UNSTATED, MayBeUnknown
from moot.protocols.text.labels import begins_an_answer, read_label, unwrapped
from moot.protocols.text.numbers import leading_number
from moot.protocols.validation_messages import InvalidReply, misfit

PLAIN = "plain"
"""Mark of a reading: the reply was asked for, and read, as plain text."""

Named = Callable[[str], str | None]
"""Answer that a text names; None for none, or several."""

_MARKS = " \t-*_#>\u2022"
"""Marks of lists, quotes and emphasis at the start of a line."""

_CLOSING = " \t*_`"
_OPENING = " \t\"'`*_([{\u2018\u201c\u00ab"
_ABOUT = re.compile(r"(?:about|around|approximately|roughly)\s+|[~\u2248]\s*", re.IGNORECASE)
_ENDS = re.compile(r"[01]\s*/\s*[01]\b(?!\.)")
"""Both ends of a range, as a copy of the form has them; no fraction."""

_PERCENT = re.compile(r"%|\bper\s?cent\b", re.IGNORECASE)
_LEAD = r"(?:(?:my|the|final)\s+){{0,2}}{name}[*_`]*\s*[:=\uff1a]"


class _Line(NamedTuple):
    start: int
    text: str


class PlainReading(NamedTuple):
    """Reply that was read from plain text.

    Attributes:
        validated: the reply.
        answer_at: offset of the first character of the answer in the text; None where it is not certain.
    """

    validated: BaseModel
    answer_at: int | None = None


def has_plain_form(model: type[BaseModel]) -> bool:
    """Whether a reply of this type can be written as plain text: one field is prose, the others fit on a line each."""
    prose = getattr(model, "prose", "")
    return bool(prose) and prose in model.model_fields


def read_plain(text: str, model: type[BaseModel], named: Named, *, closed: bool) -> PlainReading:
    """Reads a reply in plain text.

    Args:
        text: the reply.
        model: its type, which has a plain form.
        named: the answer that a text names.
        closed: whether answers are labels of a closed set; only then a line without a lead-in can be the answer.

    Raises:
        InvalidReply: no line gives an answer, lines that give a field differ, or the values do not fit.
    """
    prose = str(getattr(model, "prose", ""))
    lines = list(_lines(text, [name for name in model.model_fields if name != prose]))
    value: dict[str, Any] = {}
    taken: set[_Line] = set()
    for name, field in model.model_fields.items():
        if name in ("answer", prose):
            continue
        own = [line for line in lines if _lead(name).match(line.text)]
        taken.update(own)
        said = {_value(field, _lead(name).sub("", line.text, count=1)): None for line in own}
        if len(said) > 1:
            raise InvalidReply(f"the reply gives `{name}` several times, with different values")
        value |= dict.fromkeys([name], next(iter(said), None)) if said or _may_be_none(field) else {}
    answer: _Line | None = None
    if "answer" in model.model_fields:
        answer = _answer([line for line in lines if line not in taken], named, closed=closed)
        value["answer"] = unwrapped(answer.text)
        taken.add(answer)
    free = [_lead(prose).sub("", line.text, count=1).strip() for line in lines if line not in taken]
    value[prose] = "\n".join(filter(None, free)) or (text.strip() if answer is None else answer.text)
    return PlainReading(_validated(value, model), None if answer is None else _place(answer))


def _lines(text: str, names: Sequence[str]) -> Iterator[_Line]:
    """Lines with text, without marks at their ends; a lead-in alone on its line is one with the next."""
    start, pending = 0, None
    for raw in text.splitlines(keepends=True):
        body = raw.strip()
        bare = body.lstrip(_MARKS)
        place = start + raw.find(bare) if bare else start
        start += len(raw)
        if not bare:
            continue
        if pending is not None:
            bare, place, pending = text[pending : place + len(bare)], pending, None
        elif any(_lead(name).fullmatch(bare.rstrip(_CLOSING)) for name in names):
            pending = place
            continue
        yield _Line(place, bare)
    if pending is not None:
        yield _Line(pending, text[pending:].strip())


@lru_cache(maxsize=64)
def _lead(name: str) -> re.Pattern[str]:
    return re.compile(_LEAD.format(name=name.replace("_", "[ _]")), re.IGNORECASE)


def _answer(lines: Sequence[_Line], named: Named, *, closed: bool) -> _Line:
    """Line of the answer: of those with a lead-in that name one, all the same; without any, the first or last line.

    Raises:
        InvalidReply: none names an answer, or several differ.
    """
    led = [line for line in lines if begins_an_answer(line.text)]
    naming = {line: answer for line in led if (answer := named(line.text)) is not None}
    if not led and closed:
        ends = [*lines[:1], *lines[-1:]]
        naming = {line: answer for line in ends if (answer := named(line.text)) is not None}
    if len(set(naming.values())) > 1:
        raise InvalidReply("the reply gives several answers that differ: give one only")
    if naming:
        return next(iter(naming))
    if led:
        return led[0]  # whoever reads the label says why it is none
    raise InvalidReply("no line of the reply gives an answer: begin one with `Answer:`")


def _place(answer: _Line) -> int | None:
    inner = unwrapped(answer.text)
    if not answer.text.endswith(inner):
        return None
    return answer.start + len(answer.text) - len(inner.lstrip(_OPENING))


def _value(field: FieldInfo, said: str) -> str:
    """Value of a field's line: a number without what follows it, one of the field's own words, or the text."""
    text = said.strip(_CLOSING)
    if _is_number(field.annotation):
        stated = text.lstrip(_OPENING)
        about = _ABOUT.match(stated)
        number = None if _ENDS.match(stated) else leading_number(stated[about.end() if about else 0 :])
        return text if number is None else f"{float(number):.15g}{'%' if _PERCENT.search(text) else ''}"
    words = tuple(str(word) for word in get_args(field.annotation)) if get_origin(field.annotation) is Literal else ()
    read = read_label(text, words) if words else None
    return text if read is None else read.label


def _is_number(annotation: Any) -> bool:
    """Whether a field's values are numbers, or None."""
    if get_origin(annotation) is Literal:
        return all(type(value) is int for value in get_args(annotation))
    return annotation in (float, int) or any(map(_is_number, get_args(annotation)))


def _may_be_none(field: FieldInfo) -> bool:
    return any(isinstance(mark, MayBeUnknown) for mark in field.metadata)


def _validated(value: dict[str, Any], model: type[BaseModel]) -> BaseModel:
    """The reply; a value that does not fit a field that may be None is None."""
    try:
        return model.model_validate(value, context=UNSTATED)
    except ValidationError as error:
        wrong = {str(each["loc"][0]) for each in error.errors() if each["loc"]}
        unknown = {name for name in wrong if name in model.model_fields and _may_be_none(model.model_fields[name])}
        if not unknown or unknown != wrong:
            raise misfit(error) from error
        return model.model_validate(value | dict.fromkeys(unknown), context=UNSTATED)
