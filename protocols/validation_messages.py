"""Errors of replies and settings in plain words: the expected and the actual value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

_BY_TYPE: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "none_required": "expected null",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "set_type": "expected a list",
    "dict_type": "expected names with values",
    "mapping_type": "expected names with values",
    "model_type": "expected names with values",
    "model_attributes_type": "expected names with values",
    "literal_error": "expected {expected}",
    "enum": "expected {expected}",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected at least {ge}",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected at most {le}",
    "string_pattern_mismatch": "expected text of the form {pattern}",
}
_COUNTED: Mapping[str, tuple[str, str, str]] = {
    "too_short": ("at least", "min_length", "item"),
    "too_long": ("at most", "max_length", "item"),
    "string_too_short": ("at least", "min_length", "character"),
    "string_too_long": ("at most", "max_length", "character"),
}
_LONGEST_PLACE = 200
"""Most characters of the keys in a reply that lead to an error."""

_OF_A_WHOLE = ("missing", "extra_forbidden")
"""Values that an error does not repeat."""


def expected_value(error: Mapping[str, Any]) -> str:
    """Expected value, from one entry of `ValidationError.errors()`; messages of moot's own validators are unchanged.

    >>> expected_value({"type": "less_than_equal", "msg": "Input should be ...", "ctx": {"le": 2.0}})
    'expected at most 2'
    >>> expected_value({"type": "string_too_short", "msg": "String should ...", "ctx": {"min_length": 1}})
    'expected at least 1 character'
    """
    kind, context = error.get("type", ""), error.get("ctx") or {}
    if kind in _COUNTED and _COUNTED[kind][1] in context:
        bound, key, what = _COUNTED[kind]
        return f"expected {bound} {context[key]:,} {what}{'' if context[key] == 1 else 's'}"
    template = _BY_TYPE.get(kind)
    if template is None:
        return str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    try:
        return template.format_map({key: _short(value) for key, value in context.items()})
    except KeyError:
        return str(error["msg"])


def explain_error(error: Mapping[str, Any], shown: Callable[[str], str] = str) -> str:
    """Expected and actual value, unless that is a whole list or object.

    Args:
        shown: redacts a value's text.

    >>> explain_error({"type": "float_type", "msg": "Input should be ...", "input": "far"})
    "expected a number, not 'far'"
    """
    given = error.get("input")
    plain = error.get("type") not in _OF_A_WHOLE and (given is None or isinstance(given, str | bytes | float | int))
    return expected_value(error) + (f", not {shown(repr(given))[:60]}" if "input" in error and plain else "")


def _short(value: object) -> object:
    return f"{value:g}" if isinstance(value, float) else value


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


def misfit(error: ValueError) -> InvalidReply:
    """`InvalidReply` of a value that its model refused."""
    if not isinstance(error, ValidationError):
        return InvalidReply(f"the reply does not fit: {error}")
    found = error.errors(include_url=False)[:3]
    wording, plain = (
        "; ".join(f"`{'.'.join(map(str, each['loc']))[:_LONGEST_PLACE]}`: {explain(each)}" for each in found)
        for explain in (lambda each: each["msg"], explain_error)
    )
    return InvalidReply(f"the reply does not fit: {wording}", f"the reply does not fit: {plain}")
