"""Parser of the number that an answer states, for gold answers and for models' answers."""

from __future__ import annotations

import math
import re
from functools import cache

from moot.protocols.text.unicode_form import nfkc

_MONEY = r"[$\u20ac\u00a3\u00a5]"
_DASH = r"[-\u2212\u2013]"
_DIGITS = r"(?>(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?![.,_]?\d)"
_SCALES = {"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SHORT = {"k": 1e3, "m": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9}
_SCALE = rf"(?:{'|'.join(_SCALES)})s?\b"
_UNREAD_SCALE = r"(?:k|bn|mn|lakhs?|crores?|quadrillion|tenths?|hundredths?|thousandths?)\b"
_ALONE = r"(?<![\w.])(?<!\d,)"  # not inside a word or another number
_NUMBER = (
    # a dash with a space is a sign only where nothing before it could be joined or separated by it
    rf"(?P<sign>(?:^|[=:(]|\bis\b)\s*{_DASH}\s+|\b(?:minus|negative)\s+|(?<![\w)]){_DASH})?"
    rf"{_ALONE}(?<!/)(?P<money>{_MONEY}\s?)?(?P<inner>-)?"
    rf"(?:(?P<whole>\d+)\s+(?=\d+/))?(?P<top>{_DIGITS})(?:\s?/\s?(?P<bottom>{_DIGITS}))?"
    r"(?:e(?P<power>[-+]?\d{1,3})(?!\w))?(?:(?:st|nd|rd|th)\b)?"
    r"(?:(?P<short>k|(?(money)\s?(?:k|mn|m|bn|b)|(?!)))\b)?"
    rf"(?P<scales>(?:[\s-]+{_SCALE})*)"
    rf"(?P<unread>[^\W\d_]|[\s-]+{_UNREAD_SCALE})?"
    rf"|{_ALONE}(?P<odd>\d[\d.,_]*)"
)
_MARK = re.compile(r"####|\banswer(?:\s+is|:)|\ba:|=")
_LISTED_ANSWERS = re.compile(r"\b[b-pr-z]:\s*\S")  # beside `B: 6` an `A: 5` is one of several, unlike beside `Q: ...`
_BOX = "\\boxed{"
_BRACE = re.compile(r"[{}]")
_THIN_SPACE = re.compile(r"(?<=\d)(?:\\,|,\\!)(?=\d{3})")
_GOES_ON = re.compile(
    rf"(?:\s+[^\W\d_]+){{0,2}}\s*(?:[,;=+*/^x\u00d7\u00f7]|{_DASH}|\band\b|\bor\b|\bto\b)\s*(?:{_MONEY}\s?)?\.?\d"
)
_TERMS = re.compile(
    rf"(?:[\d)%]\s*(?:{_DASH}|[x^]|\bminus\b)|[\w)%]\s*(?:[+*\u00d7\u00f7\u00b7]|\b(?:plus|times|divided by)\b))"
    rf"\s*(?:{_MONEY}|\()?\s*\.?\d"
)
_LISTED = re.compile(r"(.*?)(?:[,;]|\band\b)(?:\s*and)?\s*[^\W\d_]+\s*", re.DOTALL)
_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{([^{}]*)\}\s*\{([^{}]*)\}?|(\d)\s*(\d))")
_MIXED = re.compile(r"(?<=\d)(?=\d\u2044|\\[dt]?frac)")  # NFKC makes "31\u20442" of "3\u00bd"
_RELATIVE_TOLERANCE = 1e-6


@cache
def _number() -> re.Pattern[str]:
    """The pattern of a number; compiled at its first use, as that takes longer than any import here."""
    return re.compile(_NUMBER)


def stated_number(text: str) -> float | None:
    """Number that a text states; None when it states none, or several that differ. Raises nothing.

    Read are digits with a sign (`-3`, `minus 3`), a decimal point, commas between thousands, a fraction (`5/2`,
    `3 / 4`, `1 1/2`, LaTeX), a power of ten (`2e3`), and behind a number the words dozen, hundred, thousand to
    trillion, `k`, and for money `m` and `bn`. A currency sign and whatever else stands around the number count for
    nothing, and so does a percent sign: `50%` is 50, as the question asked for per cent. Number words ("five") are not
    read.

    What is in a `\\boxed{}` counts before anything else. Behind the last `####`, `answer is`, `answer:`, `A:` or `=`
    only what follows counts; of what follows a last `####` (GSM8K's form) the number directly behind it, whatever words
    come then; where terms of a sum or the like follow an `=`, what stands before it. A number that cannot be read in
    full, such as `5kg` or `1,23`, is not read in part: such a text states none.

    >>> [stated_number(text) for text in ("72", "$1,234.50", "1,234 apples", "-3", "5/2", "50%", ".5", "5k")]
    [72.0, 1234.5, 1234.0, -3.0, 2.5, 50.0, 0.5, 5000.0]
    >>> stated_number("The answer is 18."), stated_number("16 = 8 + 8"), stated_number("18 or 19")
    (18.0, 16.0, None)
    >>> [stated_number(text) for text in ("3 boxes of 6. A: 18", "#### 18 in 3 boxes", "of 3: \\\\boxed{18}")]
    [18.0, 18.0, 18.0]
    """
    plain = _plain(text)
    boxed = {_marked(content) for content in _boxed(plain)}
    return _marked(plain) if not boxed else boxed.pop() if len(boxed) == 1 else None


def _marked(plain: str) -> float | None:
    """The number after the last mark with one, or the only number."""
    marks, end = list(_MARK.finditer(plain)), len(plain)
    if _LISTED_ANSWERS.search(plain):
        marks = [mark for mark in marks if mark[0] != "a:"]
    while marks:
        mark = marks.pop()
        behind = plain[mark.end() : end]
        if not _number().search(behind) or (mark[0] == "=" and _TERMS.search(behind)):
            end = mark.start()
            continue
        if mark[0] == "####" and (first := _leading(behind)) is not None:
            return first
        number = _single(behind)
        if mark[0] == "=" and marks and marks[-1][0] == "=":
            listed = _LISTED.fullmatch(plain[marks[-1].end() : mark.start()])
            if listed and _single(listed[1]) not in (None, number):
                return None  # `x = 5, y = 6`: neither is marked as the answer
        return number
    return _single(plain[:end])


def same_number(one: float, other: float) -> bool:
    """Whether two numbers are equal: whole ones exactly, others within a millionth of the larger. Raises nothing.

    >>> same_number(1000000.0, 1000001.0), same_number(1 / 3, 0.3333334)
    (False, True)
    """
    if one.is_integer() and other.is_integer():
        return one == other
    return math.isclose(one, other, rel_tol=_RELATIVE_TOLERANCE)


def _plain(text: str) -> str:
    plain = _THIN_SPACE.sub(",", nfkc(text).casefold().replace("{,}", ","))
    plain = _MIXED.sub(" ", plain).replace("\u2044", "/")
    return _FRACTION.sub(lambda found: f"{found[1] or found[3]}/{found[2] or found[4]}", plain)


def _boxed(plain: str) -> list[str]:
    """Content of each `\\boxed{}` that is not blank; a nested box is part of the outer one.

    The last one may lack its closing brace: `fold`, which answers have been through, takes it for punctuation.
    """
    found, start = list[str](), plain.find(_BOX)
    while start >= 0:
        begin = start + len(_BOX)
        end = _closing(plain, begin)
        found.append(plain[begin:end])
        start = plain.find(_BOX, end)
    return [content for content in found if content.strip()]


def _closing(plain: str, begin: int) -> int:
    """Index of the brace that closes the one before `begin`; the text's end if there is none."""
    depth = 1
    for brace in _BRACE.finditer(plain, begin):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    return len(plain)


def _leading(text: str) -> float | None:
    """Number at the start of a text; None without one, or where another one or terms follow."""
    text = text.lstrip()
    first = _number().match(text)
    if first is None or _GOES_ON.match(text, first.end()):
        return None
    value = _value(first)
    return value if math.isfinite(value) else None


def _single(text: str) -> float | None:
    """Single number in a text without marks; None for several, for terms, and for one that cannot be parsed in full."""
    if _TERMS.search(text):
        return None
    values = {_value(found) for found in _number().finditer(text)}
    only = values.pop() if len(values) == 1 else None
    return only if only is not None and math.isfinite(only) else None


def _value(found: re.Match[str]) -> float:
    """Value of a number; NaN for an unknown notation."""
    if found["odd"] or found["unread"]:
        return math.nan
    value = _digits(found["top"])
    if found["bottom"]:
        below = _digits(found["bottom"])
        value = value / below if below else math.nan
    value += _digits(found["whole"] or "0")
    power = int(found["power"] or "0")
    value *= 10.0**power if abs(power) <= 300 else math.nan
    value *= _SHORT[found["short"].strip()] if found["short"] else 1.0
    value *= math.prod(_SCALES[scale] for scale in re.findall("|".join(_SCALES), found["scales"]))
    return -value if (found["sign"] or found["inner"]) and value else value


def _digits(digits: str) -> float:
    return float(digits.replace(",", "").replace("_", ""))
