"""The number that an answer states: one place that reads it, for the gold number and for what a model wrote."""

from __future__ import annotations

import math
import re
import unicodedata

_PLAIN = r"(?>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?![.,]?\d)"
_NUMBER = re.compile(
    # not inside a word or another number; a sign only where nothing stands before it that it could join
    rf"(?<![\w.])(?<!\d,)(?P<sign>(?<![\w)])[-\u2212\u2013])?(?:[$\u20ac\u00a3\u00a5]\s?)?(?P<inner>-)?"
    rf"(?:(?P<whole>\d+)\s+(?=\d+/))?(?P<top>{_PLAIN})(?:/(?P<bottom>{_PLAIN}))?"
    r"(?:e(?P<power>[-+]?\d{1,3})(?!\w))?(?:\s+(?P<scale>thousand|million|billion|trillion)\b)?",
)
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_MARK = re.compile(r"####|\banswer(?:\s+is|:)|=")
_MIXED = re.compile(r"(?<=\d)(\d\u2044)")  # what NFKC makes of a half sign: "3\u00bd" arrives as "31\u20442"
_RELATIVE_TOLERANCE = 1e-6


def stated_number(text: str) -> float | None:
    """The one number that a text states; None when it states none, or several that differ. Raises nothing.

    Read are digits with a sign, a decimal point, commas between thousands, a fraction (`5/2`, `1 1/2`), a power of
    ten (`2e3`), and the words thousand to trillion behind a number. A currency sign and whatever else stands around
    the number count for nothing, and so does a percent sign: `50%` is 50, as the question asked for per cent. Number
    words ("five") are not read. Behind the last `####`, `answer is`, `answer:` or `=` only what follows counts.

    >>> [stated_number(text) for text in ("72", "$1,234.50", "1,234 apples", "-3", "5/2", "50%", ".5")]
    [72.0, 1234.5, 1234.0, -3.0, 2.5, 50.0, 0.5]
    >>> stated_number("The answer is 18."), stated_number("3 * 6 = 18 eggs"), stated_number("18 or 19")
    (18.0, 18.0, None)
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("{,}", ",")
    plain = _MIXED.sub(r" \1", plain).replace("\u2044", "/")
    marks = list(_MARK.finditer(plain))
    if marks and (behind := _values(plain[marks[-1].end() :])):
        return behind.pop() if len(behind) == 1 else None
    found = _values(plain)
    return found.pop() if len(found) == 1 else None


def same_number(one: float, other: float) -> bool:
    """Whether two numbers are equal: whole ones exactly, others within a millionth of the larger. Raises nothing.

    >>> same_number(1000000.0, 1000001.0), same_number(1 / 3, 0.3333334)
    (False, True)
    """
    if one.is_integer() and other.is_integer():
        return one == other
    return math.isclose(one, other, rel_tol=_RELATIVE_TOLERANCE)


def _values(text: str) -> set[float]:
    values = (_value(found) for found in _NUMBER.finditer(text))
    return {value for value in values if math.isfinite(value)}


def _value(found: re.Match[str]) -> float:
    value = _digits(found["top"])
    if found["bottom"]:
        below = _digits(found["bottom"])
        value = value / below if below else math.nan
    value += _digits(found["whole"] or "0")
    power = int(found["power"] or "0")
    value *= 10.0**power if abs(power) <= 300 else math.nan
    value *= _SCALES.get(found["scale"] or "", 1.0)
    return -value if (found["sign"] or found["inner"]) and value else value


def _digits(digits: str) -> float:
    return float(digits.replace(",", ""))
