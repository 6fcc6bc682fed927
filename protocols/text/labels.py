"""Label reader: from the text of a model or a file to a label of the closed set.

`read_label` is the one reader, of golds and of answers. What names a label is compared exactly first, then folded, and
names none where it fits several. Only then come lenient readings, which the result states.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from moot.protocols.text.folding import TYPOGRAPHY, bare, fold, typed, unquoted
from moot.protocols.text.label_start import leading_label, with_own_text
from moot.protocols.text.numbers import plain_number

Leniency = Literal["", "wrapped", "letter", "prefix"]
"""How a label was read: "" for a text that names it and says nothing else; "wrapped" in `\\boxed{}` or behind
"Answer:"; by its "letter" or digit in front of more words; as the "prefix" of a longer answer."""

_TRUE, _FALSE = ("yes", "true", "y", "correct"), ("no", "false", "n", "incorrect")
_MOST_TRUTH_VALUES = 3
"""Most labels of a set in which the words of `_TRUE` and `_FALSE` name those that are one of them."""


class LabelReading(NamedTuple):
    """Label that a text names, and how it was read."""

    label: str
    leniency: Leniency = ""


class _Several:
    """Marks a spelling of several labels: it names none."""


_SEVERAL = _Several()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _value(text: str) -> str:
    """A number by its value, as text; empty for other texts, and for `0/1`, which may be a choice of two."""
    number = plain_number(text)
    return "" if number is None or ("/" in text and number.denominator == 1) else str(number)


def _formula(text: str) -> str:
    """Text in lower case, without dollar signs around it, blanks at operators and commas, or underscores for blanks."""
    found = _MATH.fullmatch(text.strip().removesuffix("."))
    plain = unquoted(text if found is None else found[1] or found[2]).casefold().translate(TYPOGRAPHY)
    return _AT_OPERATOR.sub(r"\1", _one_line(plain.replace("_", " ")))


_MATH = re.compile(r"\$([^$]+)\$|\\\((.+)\\\)", re.DOTALL)
_AT_OPERATOR = re.compile(" ?([<>=\u2264\u2265+^,]) ?")


_FORMS: tuple[Callable[[str], str], ...] = (
    str.strip,
    lambda text: _one_line(unquoted(text)),
    lambda text: _one_line(unquoted(text).casefold()),
    _formula,
    lambda text: _one_line(bare(text)),
    fold,
    typed,
    _value,
)
"""Forms in which spellings are compared, from exact to loose; the first that fits decides."""

_FOLDED, _TYPED = _FORMS.index(fold), _FORMS.index(typed)

Sets = tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, ...], ...]]
"""Labels, the texts of their choices, and their aliases, as in a `Case`."""


@lru_cache(maxsize=2**12)
def _spellings(level: int, sets: Sets) -> dict[str, str | _Several]:
    """Label by spelling, in one of `_FORMS`.

    Where labels share a spelling, a label's own name goes before an alias, that before the text of a choice, and that
    before a truth value; of several of one kind none is meant.
    """
    labels, choices, aliases = sets
    form = _FORMS[level]
    kinds: list[Iterable[tuple[str, str]]] = [
        zip(labels, labels, strict=True),
        ((spelling, label) for label, spellings in zip(labels, aliases, strict=False) for spelling in spellings),
        zip(choices, labels, strict=False),
    ]
    if level >= _FOLDED and len(labels) <= _MOST_TRUTH_VALUES:
        kinds.append(_truth_values(labels))
    meanings: dict[str, str | _Several] = {}
    for kind in kinds:
        own: dict[str, str | _Several] = {}
        for spelling, label in kind:
            formed = form(spelling)
            own[formed] = label if own.get(formed, label) == label else _SEVERAL
        meanings = own | meanings
    meanings.pop("", None)
    return meanings


def _truth_values(labels: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    """Words for true and false, with the labels that are one of them."""
    for words in (_TRUE, _FALSE):
        for label in labels:
            if fold(label) in words:
                yield from ((word, label) for word in words)


def surface_forms(
    labels: tuple[str, ...], choices: tuple[str, ...] = (), aliases: tuple[tuple[str, ...], ...] = ()
) -> dict[str, str]:
    """Labels by folded spelling; a spelling of several labels is omitted.

    Where one spelling would mean several labels, a label's own name goes before aliases, those before the texts of
    choices, and those before yes/true and no/false, which only sets of at most three labels have.

    >>> surface_forms(("Yes", "No"))["true"], "aa" in surface_forms(("A", "B"), ("Aa", "aa"))
    ('Yes', False)
    """
    return dict(_one_each(_FOLDED, (labels, choices, aliases)))


@lru_cache(maxsize=2**10)
def _one_each(level: int, sets: Sets) -> dict[str, str]:
    return {form: label for form, label in _spellings(level, sets).items() if isinstance(label, str)}


def _named(text: str, sets: Sets) -> str | _Several | None:
    for level, form in enumerate(_FORMS):
        formed = form(text)
        if formed and (label := _spellings(level, sets).get(formed)) is not None:
            return label
    return None


def canonical_label(
    text: str, labels: tuple[str, ...], choices: tuple[str, ...] = (), aliases: tuple[tuple[str, ...], ...] = ()
) -> str | None:
    """Label that `text` names, saying nothing else; None when it names none of the set, or several.

    It names one by its name, by an alias (those given, in the labels' order, and yes/true ...), or by the whole text of
    a choice. The exact spelling decides before a folded one; numbers are also compared by value.

    >>> canonical_label("TRUE", ("Yes", "No")), canonical_label(".50", ("0.25", "0.5"))
    ('Yes', '0.5')
    >>> canonical_label("aa", ("A", "B", "C"), ("AA", "Aa", "aa")), canonical_label("aA", ("A", "B"), ("AA", "Aa"))
    ('C', None)
    >>> canonical_label("chickenpox", ("Flu", "Varicella"), aliases=(("influenza",), ("chickenpox",)))
    'Varicella'
    """
    label = _named(text, (labels, choices, aliases))
    return label if isinstance(label, str) else None


def read_label(
    text: str, labels: tuple[str, ...], choices: tuple[str, ...] = (), aliases: tuple[tuple[str, ...], ...] = ()
) -> LabelReading | None:
    """Label that a text names, as `canonical_label` or more leniently; None when it names none, or several.

    Leniently, a label may stand in `\\boxed{}` or behind "Answer:", and it may begin a longer answer, followed by a
    delimiter: a comma, full stop, colon, semicolon, exclamation mark, dash, closing or opening bracket, or a new line;
    one inside a number or a word (`1.5`, `A-level`) is none. Where labels begin alike, the longest that fits counts. An
    answer that names another label between two delimiters (`A or B`, `B - C`, `B) Mars` where Mars is A's text) names
    none, nor does a letter that may be an initial (`C. S. Lewis`; `B. Obama`, where B has another text). "No evidence
    either way" is not No.

    >>> read_label("\\\\boxed{B}", ("A", "B")), read_label("(B) because", ("A", "B"))
    (LabelReading(label='B', leniency='wrapped'), LabelReading(label='B', leniency='letter'))
    >>> read_label("No, the meeting was moved", ("Yes", "No"))
    LabelReading(label='No', leniency='prefix')
    >>> read_label("No evidence either way", ("Yes", "No")) is None
    True
    """
    sets = (labels, choices, aliases)
    label = _named(text, sets)
    if label is not None:
        return LabelReading(label) if isinstance(label, str) else None
    inner = unwrapped(text)
    if inner != text and (label := _named(inner, sets)) is not None:
        return LabelReading(label, "wrapped") if isinstance(label, str) else None
    texts = dict(zip(labels, choices, strict=False))
    found = with_own_text(inner, texts)
    for each in dict.fromkeys((text, inner)):
        found = found or leading_label(each, _one_each(_TYPED, sets), lambda clause: _named(clause, sets), texts)
    return None if found is None else LabelReading(*found)


_LEAD_IN = re.compile(
    r"[\s*_`#]*(?:(?:so|thus|hence|therefore)[\s,]+)?(?:(?:the|my)\s+)?(?:(?:final|correct|right|best)\s+)?"
    r"(?:(?:answer|choice|option|label)(?:\s+to\s+(?:the|this|your)\s+question)?[*_`]*"
    r"(?:\s+(?:is|should be|must be|would be)\b|\s*[:=\uff1a])[\s*_`:]*"
    r"(?:(?:choice|option)\b\s*)?|(?:choice|option|answer)\s+(?=[(\[]?\w\b)"
    r"|(?:antwort|respuesta|resposta|risposta|r\u00e9ponse|\u043e\u0442\u0432\u0435\u0442|\u7b54\u6848|\u7b54\u3048"
    r"|\uc815\ub2f5)(?:\s*[:\uff1a]|(?<=\u7b54\u6848)[\u662f\u4e3a])[\s*_`]*)",
    re.IGNORECASE,
)
_WRAPPED = re.compile(
    r"\\(?:boxed|fbox|text|textbf|mathrm|mathbf|mbox)\s*\{(.*)\}|\\\((.*)\\\)|\\\[(.*)\\\]|\$([^$]*)\$", re.DOTALL
)
_MOST_WRAPPED = 4
"""Most layers of wrapping, such as a box in dollar signs behind "Answer:"."""


def begins_an_answer(text: str) -> bool:
    """Whether a text begins as one that gives an answer, such as "Answer:" or "The answer is". Raises nothing.

    >>> begins_an_answer("**Answer:** B"), begins_an_answer("B, as the answer is known")
    (True, False)
    """
    return _LEAD_IN.match(text) is not None


def unwrapped(text: str) -> str:
    """Answer without `\\boxed{}`, `$...$` and "The answer is" around it. Raises nothing.

    >>> unwrapped("**Answer:** B"), unwrapped("The final answer is $\\\\boxed{\\\\text{B}}$."), unwrapped("not B")
    ('B', 'B', 'not B')
    >>> unwrapped("The answer to this question is: B")
    'B'
    """
    for _ in range(_MOST_WRAPPED):
        inner = _LEAD_IN.sub("", text, count=1) if _LEAD_IN.match(text) else text
        if (found := _WRAPPED.fullmatch(inner.strip().removesuffix("."))) is not None:
            inner = next(group for group in found.groups() if group is not None)
        if inner == text or not inner.strip():
            break
        text = inner
    return text
