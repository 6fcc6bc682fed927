"""Short answers: the normal form of SQuAD's script, in which numbers, formulas and names keep their signs."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from moot.protocols.text.folding import fold, interval_brackets
from moot.protocols.text.labels import unwrapped
from moot.protocols.text.numbers import plain_number, same_number
from moot.protocols.text.unicode_form import nfkc

_ARTICLES = frozenset({"a", "an", "the"})
_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_MARKS = frozenset("$+<=>^`|~")
"""ASCII marks that Unicode calls symbols; they go with the punctuation, as in SQuAD's own script."""

_GROUPS = re.compile(r"(?<=\d)(?:,|'|\u2019)(?=\d{3}(?!\d))")
_POINT_FIRST = re.compile(r"(?<![\w.])\.(?=\d)")
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-") | {"\u2044": "/"})
_LATEX = re.compile(
    r"\\(?:left|right)(?![a-z])|\\[,;:! ]|\\(?:text|textbf|mathrm|mbox)\s?\{(?P<text>[^{}]*)\}"
    r"|\\[dtc]?frac\{(?P<top>[\w\\^\u221a]+(?:\{\w+\})?)\}\{(?P<bottom>\w+)\}|\\[dtc](?=frac)"
    r"|\\(?P<symbol>pi|infty|pm|leq?|geq?|sqrt|emptyset|cup|cdot|times)(?![a-z])"
)
_BRACED = re.compile(r"\{(\w+)\}(?!\w)")
_SYMBOLS = dict(pi="\u03c0", infty="\u221e", pm="\u00b1", le="\u2264", leq="\u2264", ge="\u2265", geq="\u2265")
_SYMBOLS |= dict(sqrt="\u221a", emptyset="\u2205", cup="\u222a", cdot="*", times="*")
_OPERATOR = re.compile(
    " ?([-+*/=^<>\u2264\u2265\u222a\u00b1]|(?<![^\\d\u221e\u03c0]),(?=[- ]{0,3}[\\d\u221e\u03c0\u221a])) ?"
)
_WORD = re.compile(r"(?<![\\a-z])[a-z]{2,}")
_COMPARISON = re.compile(r"([<>\u2264\u2265]=?)\s+(?=-?\d)")
_MEANS = re.compile(
    r"(?<=\d)[-.,:/*_](?=\d)|(?<=\d),(?=-)|(?<=\d)/(?=\w)|(?<=\w)/(?=\d)|\^(?=[\w{(-])"
    r"|(?<![\w)])-(?=[$\u20ac\u00a3\u00a5]?\d|[^\W\d_]\b|[\\(\u221e\u221a])|[<>\u2264\u2265]=?(?=-?[\w.\\])"
    r"|(?<=[\w)])[+](?=[\w\\(-])|(?<=\w)(?:[+#]+|-)(?![\w-])"
)
"""Marks that make another number, range, formula or name of what is beside them: -5, 1/2, x+1, <5, C#, O-."""


def normalised(text: str) -> str:
    """Normal form of a short answer: lower case, without punctuation and articles, single spaces.

    These are the steps of SQuAD's script, which treats ASCII punctuation only. Here Unicode's counts too (quotes,
    dashes), and characters are first folded to their compatible form (NFKC) and case (a sharp s is `ss`). Unlike there,
    a mark stays that makes another number, formula or name: a minus sign, a decimal point, a slash, a colon or a dash
    between digits, `+`, `^`, `<` and `>` in a formula, `+`, `-` and `#` at the end of a word. A text of nothing else
    stays as `fold` spells it, where SQuAD's script leaves nothing: "The The" and "A" are answers, too. Raises nothing.

    >>> normalised("The Beatles' song."), normalised("-5 kg."), normalised("Covid-19, 1,234 cases")
    ('beatles song', '-5 kg', 'covid19 1234 cases')
    """
    plain = nfkc(text).casefold().translate(_DASHES)
    if "\\" in plain:
        plain = _LATEX.sub(_as_typed, plain)
    if "{" in plain:
        plain = _BRACED.sub(r"\1", plain)
    if not _WORD.search(plain):  # a formula
        plain = _OPERATOR.sub(r"\1", " ".join(plain.split()))
    plain = _COMPARISON.sub(r"\1", _POINT_FIRST.sub("0.", _GROUPS.sub("", plain)))
    kept_at = {at for found in _MEANS.finditer(plain) for at in range(*found.span())}
    kept = "".join(c for at, c in enumerate(plain) if at in kept_at or not _is_punctuation(c))
    return " ".join(word for word in kept.split() if word not in _ARTICLES) or fold(text)


def _as_typed(found: re.Match[str]) -> str:
    """What a keyboard has for a command of LaTeX."""
    if found["top"]:
        return _BRACED.sub(r"\1", _LATEX.sub(_as_typed, found["top"])) + "/" + found["bottom"]
    if found[0] in ("\\d", "\\t", "\\c"):
        return "\\"
    return found["text"] or _SYMBOLS.get(found["symbol"], "")


def _is_punctuation(character: str) -> bool:
    return character in _MARKS or unicodedata.category(character).startswith("P")


def exact_match(answer: str, accepted: Sequence[str]) -> bool:
    """Whether an answer is one of the accepted ones after normalisation, or the same number. Raises nothing.

    >>> exact_match("the eiffel tower", ["Eiffel Tower", "La tour Eiffel"]), exact_match("3/4", ["0.75"])
    (True, True)
    >>> exact_match("12", ["1/2"]), exact_match("-5 kg", ["5 kg"])
    (False, False)
    """
    form, meaning, kind = normalised(answer), short_meaning(answer), interval_brackets(answer)
    return any(
        same_meaning(meaning, short_meaning(each))
        or (form == normalised(each) and (not kind or interval_brackets(each) in ("", kind)))
        for each in accepted
    )


def token_f1(answer: str, accepted: Sequence[str]) -> float:
    """Word F1 of an answer: its maximum over the accepted ones, in [0, 1]. Raises nothing.

    With k words in common, counted as often as both have them: 2 k / (words of the one + words of the other).
    Source: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", 2016.

    >>> round(token_f1("Sir Edmund Barton", ["Edmund Barton"]), 3)
    0.8
    """
    words = Counter(normalised(answer).split())
    return max((_f1(words, Counter(normalised(each).split())) for each in accepted), default=0.0)


def _f1(one: Counter[str], other: Counter[str]) -> float:
    total = one.total() + other.total()
    return 2.0 * (one & other).total() / total if total else 0.0


Meaning = str | Fraction
"""What is compared of an answer: a normal form, or a number."""


def short_meaning(answer: str) -> Meaning:
    """Number that an answer is, else its normal form; true is yes, as JSON has no yes. Raises nothing."""
    answer = unwrapped(answer)
    number = plain_number(_ARTICLE.sub("", answer, count=1) if _ARTICLE.match(answer) else answer)
    if number is not None:
        return number
    form = normalised(answer)
    return interval_brackets(answer) + _TRUTH_VALUES.get(form, form)


_TRUTH_VALUES = {"true": "yes", "false": "no"}


def same_meaning(one: Meaning, other: Meaning) -> bool:
    """Whether two answers mean the same. Raises nothing."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return same_number(one, other)
