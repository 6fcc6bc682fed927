"""Scoring: whether an answer is right, on which no message may depend, and whether two answers are equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moot.protocols.case import Reference, Scoring
from moot.protocols.tasks.short_answers import Meaning, exact_match, same_meaning, short_meaning
from moot.protocols.text.folding import fold
from moot.protocols.text.numbers import stated_number

_BY_LABEL = Reference()


def is_correct(answer: str | None, gold: str | None, reference: Reference = _BY_LABEL) -> bool | None:
    """Whether a verdict's answer is right; None when unknown. Raises nothing.

    By the reference's `scoring`:

    - "label": it is the gold label, or another accepted one, as `fold` spells them. Labels of one set differ after it,
      and a free-text answer, which arrives folded, meets its gold text.
    - "number": it states one number, which has the gold one's value; see `moot.protocols.text.numbers`.
    - "short answer": it is one of the accepted answers; see `moot.protocols.tasks.short_answers`.
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
    given = _meaning(answer, reference.scoring)
    if reference.scoring in ("number", "score") and isinstance(given, str):
        return False
    return any(same_meaning(given, _meaning(each, reference.scoring)) for each in accepted)


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


def _meaning(answer: str, scoring: Scoring) -> Meaning:
    if scoring == "short answer":
        return short_meaning(answer)
    number = stated_number(answer) if scoring in ("number", "score") else None
    return fold(answer) if number is None else number


def _known(meaning: Meaning, known: Iterable[Meaning]) -> Meaning:
    """First known meaning equal to this one; itself when there is none."""
    if isinstance(meaning, str):
        return meaning  # the dictionary finds it at once
    return next((each for each in known if same_meaning(each, meaning)), meaning)
