"""The two sides, the topics, and the turns on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from moot.protocols.case import Case
from moot.protocols.text.labels import canonical_label

_CONTRARY = (("for", "against"), ("yes", "no"), ("true", "false"))
"""Label pairs that mean for and against."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two debaters.

    Attributes:
        name: its full role name.
        letter: its name in texts.
        stance: towards the subject.
    """

    name: str
    letter: Literal["A", "B"]
    stance: Literal["for", "against"]


FOR = Side("agent/0", "A", "for")
AGAINST = Side("agent/1", "B", "against")
SIDES = (FOR, AGAINST)
"""Sides in the order of speaking."""


def other(side: Side) -> Side:
    """The opponent."""
    return AGAINST if side is FOR else FOR


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic of the debate."""

    title: str
    description: str = ""

    def record(self) -> dict[str, str]:
        """Recorded form."""
        return {"title": self.title, "description": self.description}


@dataclass(frozen=True, slots=True)
class SideTurn:
    """Turn of a side in one round.

    Attributes:
        side: the speaker.
        number: number of the round; 0 for the opening.
        by_topic: title to argument, in the topics' order.
        left_out: titles of skipped topics.
        finished: whether its arguments are exhausted.
        conceded: whether it concedes that the other side is right.
    """

    side: Side
    number: int
    by_topic: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    finished: bool = False
    conceded: bool = False

    def text(self) -> str:
        """The whole turn as one document."""
        return "\n\n".join(f"{title}: {text}" for title, text in self.by_topic.items())


def by_title(numbered: Sequence[tuple[int, str]], topics: Sequence[Topic]) -> dict[str, str]:
    """Texts by the title of their topic, in the topics' order; numbers without a topic are skipped.

    >>> by_title([(2, "b"), (1, "a"), (2, "c"), (7, "x")], [Topic("One"), Topic("Two")])
    {'One': 'a', 'Two': 'b\\nc'}
    """
    found: dict[str, list[str]] = {}
    for number, text in numbered:
        if 1 <= number <= len(topics):
            found.setdefault(topics[number - 1].title, []).append(text)
    return {topic.title: "\n".join(found[topic.title]) for topic in topics if topic.title in found}


def latest_arguments(turns: Sequence[SideTurn], side: Side, topics: Sequence[Topic]) -> dict[str, str]:
    """The side's latest argument on each of the topics, by title."""
    latest: dict[str, str] = {}
    for one in turns:
        if one.side is side:
            latest |= one.by_topic
    return {topic.title: latest[topic.title] for topic in topics if topic.title in latest}


def open_answers(case: Case) -> tuple[str, ...]:
    """Closed list of a case's answers, as text; empty for a subject with only for and against.

    With one, each side names and defends its own answer (the source's study of diagnoses).

    >>> open_answers(Case(id="c", question="Which?", labels=("A", "B"), choices=("flu", "cold")))
    ('A) flu', 'B) cold')
    >>> open_answers(Case(id="c", question="Is it?", labels=("Yes", "No")))
    ()
    """
    if _for_and_against(case):
        return ()
    labels = case.labels or ()
    return tuple(f"{label}) {choice}" for label, choice in zip(labels, case.choices, strict=False)) or labels


def answer_of(case: Case, winner: Literal["For", "Against", "Tie"] | None) -> str | None:
    """Answer of the debate in the case's own terms: its label, or the winner itself without labels.

    None for a tie, and for closed lists other than for and against, on which the sides choose their own answers.

    >>> answer_of(Case(id="c", question="Is it?", labels=("True", "False")), "Against")
    'False'
    >>> answer_of(Case(id="c", question="Is it?", labels=("yes", "no", "maybe")), "For") is None
    True
    """
    if not case.labels or winner is None:
        return winner
    return _for_and_against(case).get(winner)


def _for_and_against(case: Case) -> dict[str, str]:
    """Labels for and against, by winner; empty unless there are exactly these two."""
    labels = case.labels or ()
    for words in _CONTRARY if len(labels) == 2 else ():
        found = [canonical_label(word, labels, case.choices, case.aliases) for word in words]
        named = [label for label in found if label is not None]
        if len(set(named)) == len(words):
            return dict(zip(("For", "Against"), named, strict=True))
    return {}


def subject_slots(case: Case, topics: Sequence[Topic]) -> dict[str, Any]:
    """Common slots of this protocol's templates: the subject, its facts and its topics.

    `answers` is the closed list as text, `labels` as in replies; both are empty if the sides argue for and
    against.
    """
    answers = open_answers(case)
    return {
        "question": case.question,
        "passage": case.passage,
        "labels": list(case.labels or ()) if answers else [],
        "answers": list(answers),
        "topics": [topic.record() for topic in topics],
    }
