"""Quantities of a sentence: numbers with units; a range, a bound or an approximation is an interval."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NUMERALS = {
    word: float(number)
    for number, word in enumerate(
        ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), start=2
    )
}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
MONTHS = frozenset(_MONTH_NAMES)

YEAR = "calendar year"
"""Unit of a year such as 1932; months are the units of their days."""

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+,\d{1,2}(?!\d)|\d+(?:\.\d+)?)"
NUMBER = re.compile(rf"([-\u2212]?)([$\u20ac\u00a3]?)({_DIGITS})\s?(%?)")
TOKEN = re.compile(
    rf"[\u2264\u2265\u2248]|(?<![\w.])[-\u2212]?[$\u20ac\u00a3]?(?<!\w){_DIGITS}(?:\s?%|(?!\w))|\w+(?:'[^\W\d_]+)?"
)
_THEN_NUMBER = rf"\s+(?=[$\u20ac\u00a3]?\d|(?:{'|'.join(NUMERALS)})\b)"
_MARKS = [
    (re.compile(rf"\b(?:{pattern}){_THEN_NUMBER}"), f"{mark} ")
    for pattern, mark in (
        (r"(?:no|not) more than|at most|up to|less than|fewer than|under|below", "\u2264"),
        (r"(?:no|not) (?:less|fewer) than|more than|greater than|at least|over|above", "\u2265"),
        (r"about|around|roughly|approximately|circa|some|nearly|almost|close to", "\u2248"),
    )
]
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(\d\d)\b")
_DASH = re.compile(r"(?<=\d)\s?[-\u2013\u2014]\s?(?=[$\u20ac\u00a3]?\d)")
_MINUS = re.compile(r"\bminus\s+(?=\d)")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_BEFORE_YEAR = MONTHS.union(
    ("in", "since", "by", "from", "until", "till", "after", "before", "during", "of", "early", "late")
)
_ABOUT = 0.1


class QuantityRange(NamedTuple):
    """Range of a quantity, both ends included; an exact one has two equal ends."""

    low: float
    high: float

    def meets(self, other: QuantityRange) -> bool:
        """Whether two quantities are compatible."""
        return self.low <= other.high and other.low <= self.high

    def __str__(self) -> str:
        low, high = f"{self.low:.15g}", f"{self.high:.15g}"
        if math.isinf(self.low) or math.isinf(self.high):
            return f"at most {high}" if math.isinf(self.low) else f"at least {low}"
        return low if low == high else f"{low} to {high}"


def marked(text: str) -> str:
    """Normalise a lower-case text: bounds as marks, one spelling of ranges and dates.

    >>> marked("over 10-15 metres on 1932-06-12")
    '\u2265 10 to 15 metres on june 12 1932'
    """
    text = _ISO_DATE.sub(lambda date: f"{_MONTH_NAMES[int(date[2]) - 1]} {int(date[3])} {date[1]}", text)
    text = _MINUS.sub("-", _DASH.sub(" to ", text))
    for pattern, mark in _MARKS:
        text = pattern.sub(mark, text)
    return text


@dataclass(frozen=True, slots=True)
class _ParsedNumber:
    """A number among the tokens: value, mark, whether a scale word follows, and end position."""

    value: float
    mark: str
    scale: float
    end: int


def quantities_of(tokens: Sequence[str], units: Sequence[str]) -> Mapping[str, frozenset[QuantityRange]]:
    """Quantities of a sentence by unit: `%`, a currency's mark, a month, `YEAR`, the word behind, or empty.

    Args:
        tokens: of `TOKEN`, of a text that is `marked`.
        units: for every token the unit that it is; empty where it cannot be one.
    """
    found: dict[str, set[QuantityRange]] = {}
    place = 0
    while place < len(tokens):
        first = _read(tokens, place)
        if first is None:
            place += 1
            continue
        last = _other_end(tokens, place, first) or first
        unit = _date_unit(tokens, place, last.end) or first.mark or last.mark or _unit_behind(tokens, last.end, units)
        low, high = first.value, last.value
        if first.scale == 1.0 and low < last.scale:
            low *= last.scale
        if low <= high:  # "3 to 2" is a score
            found.setdefault(unit, set()).add(_bounded(tokens[place - 1] if place else "", low, high))
        place = last.end
    return {unit: frozenset(intervals) for unit, intervals in found.items()}


def _read(tokens: Sequence[str], place: int) -> _ParsedNumber | None:
    token = tokens[place]
    number = NUMBER.fullmatch(token)
    if number is None and token not in NUMERALS:
        return None
    value, mark = NUMERALS.get(token, 0.0), ""
    if number is not None:
        digits = number[3]
        decimal = digits.replace(",", "." if re.fullmatch(r"\d+,\d{1,2}", digits) else "")
        value, mark = float(f"{'-' if number[1] else ''}{decimal}"), number[2] or number[4]
    scale, end = 1.0, place + 1
    while end < len(tokens) and tokens[end] in SCALES:
        scale, end = scale * SCALES[tokens[end]], end + 1
    return _ParsedNumber(value * scale, mark, scale, end)


def _other_end(tokens: Sequence[str], place: int, first: _ParsedNumber) -> _ParsedNumber | None:
    """The number at the other end of a range: "10 to 15", "between 10 and 15"."""
    joined = "and" if place and tokens[place - 1] == "between" else "to"
    if first.end + 1 < len(tokens) and tokens[first.end] == joined:
        return _read(tokens, first.end + 1)
    return None


def _bounded(before: str, low: float, high: float) -> QuantityRange:
    if before == "\u2264":
        return QuantityRange(-math.inf, high)
    if before == "\u2265":
        return QuantityRange(low, math.inf)
    around = _ABOUT if before == "\u2248" else 0.0
    return QuantityRange(low - around * abs(low), high + around * abs(high))


def _date_unit(tokens: Sequence[str], place: int, end: int) -> str:
    """The month of a day, or `YEAR`; empty for any other number."""
    before, behind = tokens[max(0, place - 2) : place], tokens[end : end + 1]
    if re.fullmatch(r"[12]?\d|3[01]", tokens[place]):
        return next((each for each in (*before[-1:], *behind) if each in MONTHS), "")
    follows_day = len(before) == 2 and before[0] in MONTHS and before[1].isdigit()
    if _YEAR.fullmatch(tokens[place]) and before and (before[-1] in _BEFORE_YEAR or follows_day):
        return YEAR
    return ""


def _unit_behind(tokens: Sequence[str], end: int, units: Sequence[str]) -> str:
    behind = tokens[end : end + 2]
    if len(behind) == 2 and behind[0] in ("and", "or") and (listed := _read(tokens, end + 1)) is not None:
        return listed.mark or _unit_behind(tokens, listed.end, units)  # "21 and 23 milligrams"
    if behind[:1] == ["percent"] or behind == ["per", "cent"]:
        return "%"
    return units[end] if behind else ""
