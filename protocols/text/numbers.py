"""Numbers that texts state: one grammar for gold answers and for models' answers.

`plain_number` reads a text that is a number and nothing else, `stated_number` also one among words. Both read a number
in full or not at all: of `3\\pi`, `e^2`, `1e3.5` and `<5` neither reads a part. `leading_number` is for a text that
begins with its number, and gives the reason behind it.
"""

from __future__ import annotations

import math
import re
import sys
from fractions import Fraction
from functools import cache

from moot.protocols.text.unicode_form import nfkc

_MONEY = r"[$\u20ac\u00a3\u00a5]"
_DASHES = "-\u2212\u2013"
_DASH = rf"[{_DASHES}]"
# in this order: commas between thousands; a decimal comma behind points between thousands, or where no thousands end;
# a decimal point
_DIGITS = (
    r"(?>\d{1,3}(?:[,_]\d{3}(?!\d))+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|0,\d+|\d{1,3},\d{4,}|\d+,\d{1,2}(?!\d)"
    r"|\d+(?:\.\d+)?|\.\d+)"
    r"(?![.,_]?\d)"
)
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SHORT = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9}
_SCALE = rf"(?:{'|'.join(_SCALES)})s?\b"
_UNREAD_SCALE = r"(?:k|bn|mn|lakhs?|crores?|quadrillion|halves|tenths?|hundredths?|thousandths?)\b"
_ALONE = r"(?<![\w.])(?<!\d,)"  # not inside a word or another number
_NUMBER = (
    # a dash with a space is a sign only where nothing before it could be joined or separated by it
    rf"(?P<sign>(?:^|[=:(]|\bis\b)\s*{_DASH}\s+|\b(?:minus|negative)\s+|(?<![\w){_DASHES}]){_DASH})?"
    rf"{_ALONE}(?<!/)(?P<money>{_MONEY}\s?)?(?P<inner>-)?"
    rf"(?:(?P<whole>\d+)\s+(?=\d+/))?(?P<top>{_DIGITS})(?:\s?/\s?(?P<bottom>{_DIGITS}))?"
    rf"(?:e(?P<power>[+{_DASHES}]?\d{{1,3}})(?!\w|\.\d))?(?P<ordinal>(?:st|nd|rd|th)\b)?"
    r"(?:(?P<short>k|(?(money)\s?(?:k|mn|m|bn|b)|(?!)))\b)?"
    rf"(?P<scales>(?:[\s-]+{_SCALE})*)"
    rf"(?P<unread>[^\W\d_]|[\s-]+{_UNREAD_SCALE})?"
    rf"|{_ALONE}(?P<odd>\d[\d.,_]*)"
)
_COMPARES = ("<", ">", "!")
_MARK = re.compile(r"####|\banswer(?:\s+is|:)|\ba:|=")
_LISTED_ANSWERS = re.compile(r"\b[b-pr-z]:\s*\S")  # beside `B: 6` an `A: 5` is one of several, unlike beside `Q: ...`
_BOX = "\\boxed{"
_BESIDE_BOX = re.compile(
    rf"(?:[{_DASHES}^\d]|(?<![^\W\d_])[^\W\d_])\\boxed\{{"
    r"|\\boxed\{[^{}]*\}(?:\s?\\(?!(?:text|quad|,))[a-z]|[\d^]|[^\W\d_](?![^\W\d_]))"
)
"""A sign or factor beside a box, which makes another number of its content."""

_BRACE = re.compile(r"[{}]")
_THIN_SPACE = re.compile(r"(?<=\d)(?:\\,|,\\!)(?=\d{3})")
_PLUS_OF_POWER = re.compile(r"(?<=\d)e\+(?=\d)")
_GROUPED = re.compile("(?<=[0-9])[\u00a0\u2009\u202f'\u2019](?=[0-9]{3}(?![0-9]))")
"""Spaces that do not break, and apostrophes, between thousands."""

_SIMPLE = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
"""What most numbers are."""

_SPACED = re.compile(rf"[+{_DASHES}]?\d{{1,3}}(?: \d{{3}})+(?:[.,]\d+)?")
"""Plain spaces between thousands: between words they may separate numbers."""

_GOES_ON = re.compile(
    rf"(?:\s+[^\W\d_]+){{0,2}}\s*(?:[,;=+*/^x\u00d7\u00f7]|{_DASH}|\band\b|\bor\b|\bto\b)\s*(?:{_MONEY}\s?)?\.?\d"
)
_TERMS = re.compile(
    rf"(?:[\d)%]\s*(?:{_DASH}|[x^]|\bminus\b)|[\w)%]\s*(?:[+*\u00d7\u00f7\u00b7]|\b(?:plus|times|divided by)\b))"
    rf"\s*(?:{_MONEY}|\()?\s*\.?\d"
)
_LISTED = re.compile(r"(.*?)(?:[,;]|\band\b)(?:\s*and)?\s*[^\W\d_]+\s*", re.DOTALL)
_FRACTION = re.compile(
    r"\\[dtc]?frac\s*(?:\{([^{}]*)\}\s*\{([^{}]*)\}?|(\d)\s*(\d)(?!\d)|(\d)\s*\{(\d+)\}|\{(\d+)\}\s*(\d)(?!\d))"
)
_OUT_OF = re.compile(r"\b(?:out\s+of|(?:of|in|to|or)\s+(?:an?\s+)?(?:ten|hundred))\b")
_CALCULATION = re.compile("<<[^<>]*>>")  # of GSM8K, in front of its result
_SIZES = re.compile(r"\\(?:left|right)(?![a-z])\s?")
_DEGREES = re.compile(r"\s?\^\s?(?:\{\s?\\circ\s?\}|\\circ(?![a-z]))")
_UNIT_POWER = re.compile(
    r"(?<=\d)((?:\s|\\[,;: ]|~)*(?:\s|\\(?:text|mathrm)\{\s*)(?:[a-z]+/)?(?:[cdkm]?m|in|ft|yd|mi|s|inches"
    r"|feet|units?|meters?|metres?)\.?\s?\}?)\s?\^\s?(?:[23]\b|\{[23]\})"
)
"""A power of the unit behind a number."""
_MIXED = re.compile(r"(?<=\d)(?=\d\u2044|\\[dtc]?frac)")  # NFKC makes "31\u20442" of "3\u00bd"
_NEGATED = re.compile(rf"({_DASH})\s?[({{[]\s?((?>[\d.,]+))\s?[)}}\]]")
_POWER_OF_TEN = re.compile(
    r"(?<![\w.,^])(?:((?>\d[\d.,]*))\s?(?:[x*\u00d7\u00b7]|\\times|\\cdot)\s?)?"
    rf"10\s?\^\s?[{{(]?\s?([+{_DASHES}]?\d{{1,3}})(?![\w.]\d|\d)\s?[}})]?"
)
_RELATIVE_TOLERANCE = 1e-6
_MOST_DIGITS = 400
_FURTHEST_POWER = 400
_CONTEXT = 48
"""Characters before and behind a number in which a mark or word may make it another one."""

_STYLE = "boxed|fbox|text|textbf|textrm|mathbf|mathrm|mbox|bf|rm|left|right|displaystyle|approx|quad|qquad|rightarrow"
_CHANGED_BEFORE = re.compile(
    # an operator, a comparison, a command or a function of it; an arrow is none
    r"(?:[\^_\u221a-\u221c<\u2264\u2265\u2260\u00b1\u2213/]|(?<![-=])>|[!<>]=)[\s({\[$\\]*$"
    rf"|\\(?!(?:{_STYLE})\b)[a-z]+\s?(?:\[[^\[\]]*\])?[\s({{\[]*$"
    r"|[^\W\d_]\($|\|$"
    rf"|{_DASH}\s?\($|[^\W\d_]{_DASH}$|(?:^|[\s(=$])[^\W\d_]\s+{_DASH}\s?$"
    # a negation, a bound or a function in words
    r"|(?:\b(?:not|never|neither|nor|cannot|except|excluding|unlike|without|than|at least|at most|under|over|below"
    r"|above|beyond|exceeds?|up to|minimum|maximum|root|half|third|quarter|double|twice|triple|square|cube|log|ln|sin"
    r"|cos|tan|exp|sqrt|mod|modulo|factorial)|n['\u2019]t)\b"
    r"(?:\s+(?:equals?|equal to|to|be|of|is|a|an|the|exactly|about))*[\s({\[$]*$"
)
_NO_CHANGE = (*"0123456789.,;:=?)",)
"""Last characters before a number that no pattern of `_CHANGED_BEFORE` ends in."""

_CHANGED_BEHIND = re.compile(
    rf"\s?\\(?!(?:{_STYLE})\b)[a-z]|\s?\^|\s?[\u221a\u03c0\u00b1\u2213<>\u2264\u2265\u2260]|\s?pi\b|[(|]"
    rf"|\s?\+(?!\s?[\d(])|\s?/\s?(?:[a-z](?![a-z])|[(\\])|{_DASH}[a-z](?![a-z])"
    r"|\s+(?:or|and)\s+(?:more|less|fewer|above|below|over|under|up|higher|lower|greater)\b"
    rf"|_\{{|\s{_DASH}\s[b-hj-z](?![\w'\u2019])"
    r"|(?:\s+[a-z]+)?\s+and\s+(?:a|one)[\s-]+(?:half|third|quarter|fourth)\b"
    r"|\s+(?:is|was)(?:\s+not|n['\u2019]t|\s+(?:wrong|incorrect|false))\b"
    r"|(?:\s+[a-z]+)?\s+below\s+zero\b"
    r"|\s+(?:plus|minus|squared|cubed|factorial)\b"
)
_PLAIN = rf"(?:[^\W\d_]?\s?=\s?)?(?:[~\u2248]\s?)?\+?(?:{_NUMBER})(?:\s?\\?%|\s?{_MONEY}|\s?\u00b0)?"
_DELIMITED = re.compile(r"\\boxed\{(.*)\}|\\\((.*)\\\)|\\\[(.*)\\\]|\$([^$]*[^$\d\s][^$]*|\s*[\d.,]+\s*)\$", re.DOTALL)
_QUOTES = " \t\r\n\"'`*_\u2018\u2019\u201c\u201d"


@cache
def _number() -> re.Pattern[str]:
    """The pattern of a number; compiled at its first use, as that takes longer than any import here."""
    return re.compile(_NUMBER)


@cache
def _plain_pattern() -> re.Pattern[str]:
    return re.compile(_PLAIN)


def plain_number(text: str) -> Fraction | None:
    """Number that a text is; None where it has other words. Raises nothing.

    The notations are those of `stated_number`, whose value it has; an ordinal is none. Quotes, `$...$`, `\\boxed{}`, a
    per cent or currency sign and a full stop at the end count for nothing.

    >>> [str(plain_number(text)) for text in (".5", "\u22125", "1e-05", "1/2", "1,5", r"\\frac{14}{3}", "5%")]
    ['1/2', '-5', '1/100000', '1/2', '3/2', '14/3', '5']
    >>> plain_number(">5"), plain_number("5 kg"), plain_number("1:30"), plain_number("Apollo 11")
    (None, None, None, None)
    """
    if len(text) > _MOST_DIGITS or not any(map(str.isnumeric, text)):
        return None
    if _SIMPLE.fullmatch(text) and len(text) <= sys.float_info.max_10_exp:
        return Fraction(text)
    plain = _normal(text).strip(_QUOTES)
    while (inner := _DELIMITED.fullmatch(plain)) is not None:
        plain = next(group for group in inner.groups() if group is not None).strip(_QUOTES)
    plain = plain.removesuffix(".").rstrip(_QUOTES)
    if _SPACED.fullmatch(plain):
        plain = plain.replace(" ", "")
    found = _plain_pattern().fullmatch(plain)
    return None if found is None or found["ordinal"] else _value(found)


def stated_number(text: str) -> Fraction | None:
    """Number that a text states; None when it states none, or several that differ. Raises nothing.

    Read are digits with a sign (`-3`, `minus 3`), a decimal point, or a comma where no thousands end (`1,5`), commas,
    apostrophes or narrow spaces between thousands, a fraction (`5/2`, `3 / 4`, `1 1/2`, LaTeX), a power of ten (`2e3`,
    `2 x 10^3`), and behind a number the words dozen, hundred, thousand to trillion, `k`, and for money `m` and `bn`. A
    currency sign and most that stands around the number count for nothing, and so does a percent sign: `50%` is 50, as
    the question asked for per cent. Number words ("five") are not read.

    What is in a `\\boxed{}` counts before anything else. Behind the last `####`, `answer is`, `answer:`, `A:` or `=`
    only what follows counts; of what follows a last `####` (GSM8K's form) the number directly behind it, whatever words
    come then; where terms of a sum or the like follow an `=`, what stands before it. A number that cannot be read in
    full, such as `5kg`, `3\\pi` or `12,34,567`, is not read in part, nor one that is negated, compared or bounded ("not
    5", `<5`, "at least 5"): such a text states none.

    >>> [float(stated_number(text)) for text in ("72", "$1,234.50", "1,234 apples", "-3", "5/2", "50%", ".5", "5k")]
    [72.0, 1234.5, 1234.0, -3.0, 2.5, 50.0, 0.5, 5000.0]
    >>> str(stated_number("The answer is 18.")), str(stated_number("16 = 8 + 8")), stated_number("18 or 19")
    ('18', '16', None)
    >>> [str(stated_number(text)) for text in ("3 boxes of 6. A: 18", "#### 18 in 3 boxes", "of 3: \\\\boxed{18}")]
    ['18', '18', '18']
    """
    if (number := plain_number(text)) is not None:
        return number
    plain = _normal(text)
    boxed = {_marked(content) for content in _boxed(plain)}
    if not boxed:
        return _marked(plain)
    return None if len(boxed) > 1 or _BESIDE_BOX.search(plain) else boxed.pop()


def leading_number(text: str) -> Fraction | None:
    """Number that a text begins with, whatever words follow; None where another number follows, or "out of".

    >>> [leading_number(text) for text in ("0.8 - fairly sure", "9/10", "0.7-0.8", "9 out of ten", "see 1")]
    [Fraction(4, 5), Fraction(9, 10), None, None, None]
    """
    if (number := plain_number(text)) is not None:
        return number
    plain = _normal(text).strip(_QUOTES)
    return _single(plain) if _number().match(plain) and not _OUT_OF.search(plain) else None


def same_number(one: Fraction, other: Fraction) -> bool:
    """Whether two numbers are equal: whole ones exactly, others within a millionth of the larger. Raises nothing.

    >>> same_number(Fraction(2**53), Fraction(2**53 + 1)), same_number(Fraction(1, 3), Fraction("0.3333334"))
    (False, True)
    """
    if one.denominator == other.denominator == 1:
        return one == other
    return math.isclose(one, other, rel_tol=_RELATIVE_TOLERANCE)


def boxed_answer(text: str) -> str | None:
    """Content of the `\\boxed{}` in a text; None for a text with none, or with several that differ. Raises nothing.

    >>> boxed_answer(r"Hence $x = \\boxed{\\frac{14}{3}}$.")
    '\\\\frac{14}{3}'
    """
    boxed = {content.strip() for content in _boxed(text)}
    return boxed.pop() if len(boxed) == 1 else None


def _marked(plain: str) -> Fraction | None:
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
        if mark[0] == "=" and plain[mark.start() - 1 : mark.start()] in _COMPARES:
            return None
        if mark[0] == "####" and (first := _leading(behind)) is not None:
            return first
        number = _single(behind)
        if mark[0] == "=" and marks and marks[-1][0] == "=":
            listed = _LISTED.fullmatch(plain[marks[-1].end() : mark.start()])
            if listed and _single(listed[1]) not in (None, number):
                return None  # `x = 5, y = 6`: neither is marked as the answer
        return number
    return _single(plain[:end])


def _normal(text: str) -> str:
    """The text in one notation: case folded, fractions with `/`, powers of ten with `e`."""
    plain = nfkc(_GROUPED.sub(",", text)).casefold().replace("{,}", ",")
    plain = _PLUS_OF_POWER.sub("e", _THIN_SPACE.sub(",", plain))
    plain = _MIXED.sub(" ", plain).replace("\u2044", "/")
    if "<<" in plain:
        plain = _CALCULATION.sub("", plain)
    if "\\" in plain:
        plain = _FRACTION.sub(lambda found: "/".join(filter(None, found.groups())), _SIZES.sub("", plain))
    if "^" in plain:
        plain = _UNIT_POWER.sub(r"\1", _DEGREES.sub("\u00b0", plain))
        plain = _POWER_OF_TEN.sub(lambda found: f"{found[1] or 1}e{found[2]}", plain)
    return _NEGATED.sub(r"\1\2", plain)


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


def _leading(text: str) -> Fraction | None:
    """Number at the start of a text; None without one, or where another one or terms follow."""
    text = text.lstrip()
    first = _number().match(text)
    return None if first is None or _GOES_ON.match(text, first.end()) else _value(first)


def _single(text: str) -> Fraction | None:
    """Single number in a text without marks; None for several, for terms, and for one that cannot be parsed in full."""
    if _TERMS.search(text):
        return None
    values = set[Fraction | None]()
    for found in _number().finditer(text):
        values.add(_value(found))
        if len(values) > 1:
            return None
    return values.pop() if values else None


def _value(found: re.Match[str]) -> Fraction | None:
    """Value of a number; None for an unknown notation, and for one that what stands beside it changes."""
    if found["odd"] or found["unread"] or _is_changed(found):
        return None
    power = _power(found["power"])
    parts = [found["whole"] or "0", found["top"], found["bottom"] or "1"]
    if abs(power) > _FURTHEST_POWER or max(map(len, parts)) > _MOST_DIGITS:
        return None
    whole, top, bottom = map(_digits, parts)
    if not bottom or (found["sign"] and found["inner"] and not found["bottom"]):
        return None
    value = (whole + top / bottom) * Fraction(10) ** power
    value *= _SHORT[found["short"].strip()] if found["short"] else 1
    value *= math.prod(_SCALES[scale] for scale in re.findall("|".join(_SCALES), found["scales"]))
    try:
        float(value)
    except OverflowError:
        return None
    return -value if bool(found["sign"]) != bool(found["inner"]) else value


def _is_changed(found: re.Match[str]) -> bool:
    """Whether a mark or word beside a number makes it another one, or a point of several numbers."""
    text, start, end = found.string, found.start(), found.end()
    before, behind = text[max(0, start - _CONTEXT) : start], text[end : end + _CONTEXT]
    if "," in found["top"] and before.endswith(("(", "[", "{")) and behind.startswith((")", "]", "}", "\\}")):
        return "." not in found["top"] and len(found["top"].rpartition(",")[2]) != len("000")
    if _CHANGED_BEHIND.match(behind) is not None:
        return True
    return not before.rstrip(" ").endswith(_NO_CHANGE) and _CHANGED_BEFORE.search(before) is not None


def _power(power: str | None) -> int:
    return int(re.sub(_DASH, "-", power)) if power else 0


def _digits(digits: str) -> Fraction:
    """Value of digits; a comma with other than three digits behind it, or behind a point, is a decimal comma."""
    whole, comma, decimals = digits.replace("_", "").rpartition(",")
    if comma and "." not in decimals and (len(decimals) != len("000") or "." in whole or whole == "0"):
        return Fraction(f"{whole.replace('.', '')}.{decimals}")
    return Fraction(digits.replace(",", "").replace("_", ""))
