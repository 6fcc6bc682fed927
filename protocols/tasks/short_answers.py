"""Short texts as answers: SQuAD's normalisation beyond ASCII, exact match and token F1 over the accepted ones."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

from moot.protocols.labels import fold
from moot.protocols.unicode_form import nfkc

_ARTICLES = frozenset({"a", "an", "the"})
_MARKS = frozenset("$+<=>^`|~")
"""ASCII marks that Unicode calls symbols; they go with the punctuation, as in SQuAD's own script."""


def normalised(text: str) -> str:
    """Text as short answers are compared: lower case, without punctuation and articles, single spaces.

    These are the steps of SQuAD's script, which knows ASCII punctuation only. Here Unicode's counts, too (quotes,
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
    """The largest F1 of an answer's words with those of an accepted one, in [0, 1]. Raises nothing.

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
