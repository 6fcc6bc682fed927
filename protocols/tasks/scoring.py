"""Scoring: whether an answer is right, on which no message may depend, and whether two answers are equal."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from moot.protocols.case import Reference, Scoring
from moot.protocols.text.folding import fold
from moot.protocols.text.labels import unwrapped
from moot.protocols.text.numbers import plain_number, same_number, stated_number
from moot.protocols.text.unicode_form import nfkc

_ARTICLES = frozenset({"a", "an", "the"})
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
_BRACED = re.compile(r"\{(\w+)\}")
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
    return any(_same(_short_meaning(answer), _short_meaning(each)) for each in accepted)


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


_BY_LABEL = Reference()


def is_correct(answer: str | None, gold: str | None, reference: Reference = _BY_LABEL) -> bool | None:
    """Whether a verdict's answer is right; None when unknown. Raises nothing.

    By the reference's `scoring`:

    - "label": it is the gold label, or another accepted one, as `fold` spells them. Labels of one set differ after it,
      and a free-text answer, which arrives folded, meets its gold text.
    - "number": it states one number, which has the gold one's value; see `moot.protocols.text.numbers`.
    - "short answer": it is one of the accepted answers; see `exact_match`.
    - "score": it is the score that one of the raters gave.

    Without a gold answer nothing is scored. No answer is a wrong one: abstaining must not look better than
    answering, and two ways to answer are compared over the same cases.

    >>> is_correct("Yes", "Yes"), is_correct("No", "Yes"), is_correct(None, "Yes"), is_correct("Yes", None)
    (True, False, False, None)
    >>> is_correct("$1,234.50", "1234.5", Reference(scoring="number"))
    True
    >>> is_correct("3", "2", Reference(scoring="score", accepted=("2", "3")))
    True
    """
    if gold is None:
        return None
    if answer is None:
        return False
    accepted = accepted_answers(gold, reference)
    given = _meaning(answer, reference.scoring)
    if reference.scoring in ("number", "score") and isinstance(given, str):
        return False
    return any(_same(given, _meaning(each, reference.scoring)) for each in accepted)


def accepted_answers(gold: str, reference: Reference) -> tuple[str, ...]:
    """Right answers, the gold one first. Raises nothing.

    >>> accepted_answers("1901", Reference(scoring="short answer", accepted=("Edmund Barton", "1901")))
    ('1901', 'Edmund Barton')
    """
    return tuple(dict.fromkeys((gold, *reference.accepted)))


def alike(answers: Sequence[str], scoring: Scoring) -> list[str]:
    """Answers in the spelling of the first equal one, so that equal ones can be counted.

    By `scoring`, like `is_correct`. One that states no number is compared as a label. Raises nothing.

    >>> alike(["57,500", "57500", "12"], "number"), alike(["the Louvre", "Louvre"], "short answer")
    (['57,500', '57,500', '12'], ['the Louvre', 'the Louvre'])
    """
    first: dict[Meaning, str] = {}
    return [first.setdefault(_known(_meaning(answer, scoring), first), answer) for answer in answers]


def same_answer(one: str, other: str, scoring: Scoring) -> bool:
    """Whether two answers are equal; see `alike`. Raises nothing.

    >>> same_answer("$57,500", "57500", "number"), same_answer("the Louvre", "Louvre", "label")
    (True, False)
    """
    return alike([one, other], scoring)[1] == one


Meaning = str | Fraction
"""What is compared of an answer: a normal form, or a number."""


def _meaning(answer: str, scoring: Scoring) -> Meaning:
    if scoring == "short answer":
        return _short_meaning(answer)
    number = stated_number(answer) if scoring in ("number", "score") else None
    return fold(answer) if number is None else number


def _short_meaning(answer: str) -> Meaning:
    """Number that an answer is, else its normal form; true is yes, as JSON has no yes."""
    answer = unwrapped(answer)
    form = normalised(answer)
    for text in (answer, form):
        if (number := plain_number(text)) is not None:
            return number
    return _TRUTH_VALUES.get(form, form)


_TRUTH_VALUES = {"true": "yes", "false": "no"}


def _same(one: Meaning, other: Meaning) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return same_number(one, other)


def _known(meaning: Meaning, known: Iterable[Meaning]) -> Meaning:
    """First known meaning equal to this one; itself when there is none."""
    if isinstance(meaning, str):
        return meaning  # the dictionary finds it at once
    return next((each for each in known if _same(each, meaning)), meaning)
