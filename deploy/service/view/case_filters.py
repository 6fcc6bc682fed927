"""Filters of a column of cases, as a person types them: texts and ranges of numbers, equal to those of `filters.js`."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

_DIGITS = 4
"""Digits after the point of a number that is searched as a text, as a page from disk has them."""

_HALF_UNIT = 5.000001e-4
"""Half a unit of the last decimal of a number in a cell, and a little more: halves are not exact in binary."""

_NUMBER = r"(-?(?:\d+\.?\d*|\.\d+))"
_SPAN = re.compile(rf"{_NUMBER}\s*\.\.\s*{_NUMBER}", re.ASCII)
_BOUND = re.compile(rf"(<=|>=|<|>|=)?\s*{_NUMBER}", re.ASCII)


class NumberRange(NamedTuple):
    """A range of numbers; its ends belong to it unless it is `open`."""

    low: float
    high: float
    is_open: bool = False

    @classmethod
    def parse(cls, text: str) -> NumberRange | None:
        """The range that a text says; None for what is not understood.

        A number alone is every value that a cell shows so: cells have three decimals.

        >>> NumberRange.parse("> 0.5"), NumberRange.parse("1..2"), NumberRange.parse("many")
        (NumberRange(low=0.5, high=inf, is_open=True), NumberRange(low=1.0, high=2.0, is_open=False), None)
        """
        if span := _SPAN.fullmatch(text.strip()):
            return cls(float(span[1]), float(span[2]))
        if (bound := _BOUND.fullmatch(text.strip())) is None:
            return None
        sign, value = bound[1] or "=", float(bound[2])
        if sign == "=":
            return cls(value - _HALF_UNIT, value + _HALF_UNIT)
        low, high = (-math.inf if "<" in sign else value, math.inf if ">" in sign else value)
        return cls(low, high, is_open=sign in ("<", ">"))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column's values are numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def filter_mask(column: pa.ChunkedArray, wanted: str) -> pa.ChunkedArray | None:
    """Whether each value matches; None where what is wanted filters nothing. What is unknown matches no number."""
    if not is_number(column.type):
        return holds_text(column, wanted) if wanted else None
    if (found := NumberRange.parse(wanted)) is None:
        return None
    above, below = (pc.greater, pc.less) if found.is_open else (pc.greater_equal, pc.less_equal)
    return pc.fill_null(pc.and_(above(column, found.low), below(column, found.high)), False)


def holds_text(column: pa.ChunkedArray, text: str) -> pa.ChunkedArray:
    """Whether each value contains a text, in small or capital letters."""
    if pa.types.is_floating(column.type):
        column = pc.round(column, _DIGITS)
    return pc.match_substring(pc.fill_null(pc.cast(column, pa.string()), ""), text, ignore_case=True)
