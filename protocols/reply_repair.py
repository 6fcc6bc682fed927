"""Repair of replies that are nearly JSON. No value is changed, and none that was torn decides anything."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

import json_repair
from pydantic import BaseModel

from moot.protocols.reply_limits import CASE_LABEL
from moot.protocols.validation_messages import InvalidReply

_MOST_MENDED = 2**14
"""Most characters of a reply to repair: a longer one that is no JSON is asked for again."""

MOST_LEVELS = 100
"""Most open brackets of a reply to repair: no reply type has ten, and repairing thousands takes a long time."""

_LITERAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|[Tt]rue|[Ff]alse|null|None", re.ASCII)
_UNQUOTED = re.compile(
    r"""
      "(?:[^"\\]++|\\.)*+"?
    | '(?:[^'\\]++|\\.)*+'(?=\s*+[,:}\]])
    | (?<=:)(?P<blank>\s*+)
      (?P<value>[^\s"'{}\[\]\u201c\u2018](?:[^\s"'{}\[\]\u201c-\u201d]|[ \t](?=\S)|\{[^\s{}"']*\})*?)
      (?=[ \t]*+(?:\n|\Z|[}\]"']|//|/\*|\#\s|,\s*+(?:["'}\]\u201c]|\w++\s*+:|\Z)))
    """,
    re.DOTALL | re.VERBOSE,
)
"""Texts to pass over, and values after a colon that are written without quotes."""

_FENCE = "```"
_NUMBERS = "-+0123456789.eE"
_TORN_VALUE = re.compile(
    r"""
    (["'])(?P<key>\w++)\1\s*+:\s*+
    (?P<value>"(?:[^"\\]++|\\.)*+\\? | '(?:[^'\\]++|\\.)*+\\? | (?P<unquoted>[^\s"'\[{,}\]][^"',}\]]*+))?\Z
    """,
    re.DOTALL | re.VERBOSE,
)


def repaired(body: str, model: type[BaseModel], *, torn: bool) -> Any:
    """Value of what is no JSON, without the value that it was torn in unless that is prose."""
    if len(body) > _MOST_MENDED:
        raise InvalidReply(f"the reply is no JSON, and too long to be mended: {len(body):,} characters")
    if _levels(body) > MOST_LEVELS:
        raise too_deep()
    if torn:
        body = _without_torn_value(body.rstrip(), model)
    # json_repair would read `5%`, `>5` and `5 kg` as 5
    body = _UNQUOTED.sub(_quoted, body)
    try:
        return json_repair.loads(body)
    except ValueError as error:
        raise InvalidReply(f"the reply is no JSON that can be mended: {error}") from None


def _without_torn_value(body: str, model: type[BaseModel]) -> str:
    """A number at the torn end may have lost digits, and a label words: the field is missing, not wrong."""
    fenced = body.endswith(_FENCE)  # so that nothing was cut, and an unquoted value is whole
    whole = body.removesuffix(_FENCE).rstrip() if fenced else body.rstrip(_NUMBERS)
    if not body[len(whole) :].isalpha():
        body = whole
    torn = _TORN_VALUE.search(body)
    if torn is None or (fenced and torn["unquoted"]):
        return body
    kept = _is_text(model, torn["key"]) == bool(torn["value"])
    return body if kept else body[: torn.start()]


def _is_text(model: type[BaseModel], key: str) -> bool:
    """Whether a field is prose, in which a part is as good as a whole."""
    field = model.model_fields.get(key)
    if field is None:
        return key not in ("answer", "label")
    extra = field.json_schema_extra
    return field.annotation is str and key != "answer" and not (isinstance(extra, dict) and CASE_LABEL in extra)


def _quoted(found: re.Match[str]) -> str:
    value = found["value"]
    return found[0] if value is None or _LITERAL.fullmatch(value) else f'{found["blank"]}"{value}"'


def lost_keys(body: str, value: Any) -> list[str]:
    """Keys that are written more often than a repaired value has them: one was lost, or belongs to another object."""
    keys = value if isinstance(value, dict) else {}
    return [key for key in keys if _written(body, key) > _count(value, key)]


def _written(body: str, key: str) -> int:
    """Number of times that a key is written, quoted or, if it never is, unquoted."""
    name = re.escape(key)
    quoted = len(re.findall(rf"""(?<!\\)["'\u201c]{name}["'\u201d]\s*+:""", body))
    return quoted or len(re.findall(rf"[{{,]\s*+{name}\s*+:", body))


def _count(value: Any, key: str) -> int:
    if isinstance(value, dict):
        return (key in value) + sum(_count(each, key) for each in value.values())
    return sum(_count(each, key) for each in value) if isinstance(value, list) else 0


def _levels(body: str) -> int:
    """Most brackets open at once; those inside texts count too."""
    if sum(map(body.count, "([{")) <= MOST_LEVELS:
        return 0
    steps = (1 if char in "([{" else -1 for char in body if char in "([{}])")
    return max(accumulate(steps), default=0)


def too_deep() -> InvalidReply:
    """Error of a reply with too many open brackets."""
    return InvalidReply("the reply is nested too deeply")
