"""Scoring: whether an answer is right, on which no message may depend, and whether two answers are equal."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from moot.protocols.case import Reference, Scoring
from moot.protocols.tasks.numbers import same_number, stated_number
from moot.protocols.text.labels import fold
from moot.protocols.text.unicode_form import nfkc

_ARTICLES = frozenset({"a", "an", "the"})
_MARKS = frozenset("$+<=>^`|~")
"""ASCII marks that Unicode calls symbols; they go with the punctuation, as in SQuAD's own script."""


def normalised(text: str) -> str:
    """Normal form of a short answer: lower case, without punctuation and articles, single spaces.

    These are the steps of SQuAD's script, which treats ASCII punctuation only. Here Unicode's counts too (quotes,
    dashes), and characters are first folded to their compatible form (NFKC) and case (a sharp s is `ss`). A text of
    nothing else stays as `fold` spells it, where SQuAD's script leaves nothing: "The The" and "A" are answers, too.
    Raises nothing.

    >>> normalised("The Beatles' song.")
    'beatles song'
    """
    plain = nfkc(text).casefold()
    kept = "".join(c for c in plain if c not in _MARKS and not unicodedata.category(c).startswith("P"))
    return " ".join(word for word in kept.split() if word not in _ARTICLES) or fold(text)


def exact_match(answer: str, accepted: Sequence[str]) -> bool:
    """Whether an answer is one of the accepted ones after normalisation. Raises nothing.

    >>> exact_match("the eiffel tower", ["Eiffel Tower", "La tour Eiffel"])
    True
    """
    return normalised(answer) in {normalised(each) for each in accepted}


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
    - "number": it states one number, which has the gold one's value; see `moot.protocols.tasks.numbers`.
    - "short answer": it matches an accepted answer exactly after normalisation; see
      `moot.protocols.tasks.scoring`.
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
    if reference.scoring == "short answer":
        return exact_match(answer, accepted)
    if reference.scoring == "label":
        return fold(answer) in map(fold, accepted)
    given = stated_number(answer)
    right = [number for each in accepted if (number := stated_number(each)) is not None]
    return given is not None and any(same_number(given, number) for number in right)


def accepted_answers(gold: str, reference: Reference) -> tuple[str, ...]:
    """Right answers, the gold one first. Raises nothing.

    >>> accepted_answers("1901", Reference(scoring="short answer", accepted=("Edmund Barton", "1901")))
    ('1901', 'Edmund Barton')
    """
    return tuple(dict.fromkeys((gold, *reference.accepted)))


def alike(answers: Sequence[str], scoring: Scoring) -> list[str]:
    """Answers in the spelling of the first equal one, so that equal ones can be counted.

    By `scoring`, like `is_correct`: labels after `fold`, numbers and
    scores by value, short answers after the usual normalisation. One that states no number is compared as a
    label. Raises nothing.

    >>> alike(["57,500", "57500", "12"], "number"), alike(["the Louvre", "Louvre"], "short answer")
    (['57,500', '57,500', '12'], ['the Louvre', 'the Louvre'])
    """
    first: dict[str | float, str] = {}
    return [first.setdefault(_known(_meaning(answer, scoring), first), answer) for answer in answers]


def same_answer(one: str, other: str, scoring: Scoring) -> bool:
    """Whether two answers are equal; see `alike`. Raises nothing.

    >>> same_answer("$57,500", "57500", "number"), same_answer("$57,500", "57500", "label")
    (True, False)
    """
    return alike([one, other], scoring)[1] == one


def _meaning(answer: str, scoring: Scoring) -> str | float:
    if scoring == "short answer":
        return normalised(answer)
    number = stated_number(answer) if scoring in ("number", "score") else None
    return fold(answer) if number is None else number


def _known(meaning: str | float, known: Iterable[str | float]) -> str | float:
    """First known meaning equal to this one; itself when there is none."""
    if isinstance(meaning, str):
        return meaning
    return next((each for each in known if isinstance(each, float) and same_number(each, meaning)), meaning)
