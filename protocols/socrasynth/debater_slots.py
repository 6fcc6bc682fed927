"""Slots of a side's prompts: the subject, its identity, its contentiousness, and the debate so far."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moot.protocols.case import Case, label_in_words
from moot.protocols.contentiousness import contentiousness_level
from moot.protocols.socrasynth.events import AnswerPositions
from moot.protocols.socrasynth.sides import SIDES, Side, SideTurn, Topic, other, subject_slots

ANSWER_TOPIC = Topic("The answer", "Which of the possible answers is the right one, and why.")
"""The only topic of a debate on a closed list, as in the source's study."""


@dataclass(slots=True)
class Positions:
    """The answers of both sides; all empty on a subject without a closed list.

    Attributes:
        named: by side, the label that it named before the other's turn.
        held: current label by side.
    """

    named: dict[Side, str] = field(default_factory=dict)
    held: dict[Side, str] = field(default_factory=dict)

    def name(self, side: Side, label: str) -> None:
        """Set a side's own answer, from its opening."""
        self.named[side] = self.held[side] = label

    def concede(self, conceding: Collection[Side]) -> None:
        """Let each of these sides adopt the other's label. Two at once swap, and do not agree."""
        before = dict(self.held)
        self.held |= {side: before[other(side)] for side in conceding if other(side) in before}

    @property
    def agreed(self) -> str | None:
        """The common label of both sides; None if they differ, and without labels."""
        labels = set(self.held.values())
        return labels.pop() if len(self.held) == len(SIDES) and len(labels) == 1 else None

    @property
    def swapped(self) -> bool:
        """Whether both conceded at once, so that each has the other's original label."""
        return self.agreed is None and self.held != self.named

    def in_words(self, case: Case) -> dict[Side, str]:
        """Position of each side in prompts: its answer, or its stance on a subject."""
        return {side: self.word(case, side) for side in SIDES}

    def word(self, case: Case, side: Side) -> str:
        """Position of a side: `for` or `against`, or the answer that it named."""
        return label_in_words(case, self.named[side]) if side in self.named else side.stance

    def record(self) -> AnswerPositions:
        """Recorded form of the positions."""
        return AnswerPositions(named=_by_role(self.named), held=_by_role(self.held))


def _by_role(labels: Mapping[Side, str]) -> dict[str, str]:
    """Labels by the sides' role names."""
    return {side.name: labels[side] for side in SIDES if side in labels}


def debater_slots(
    case: Case, topics: Sequence[Topic], side: Side, level: float, said: Sequence[SideTurn], positions: Positions
) -> dict[str, Any]:
    """The slots of a side's templates; `own_answer` and `other_answer` are empty unless the sides have named theirs.

    They are the sides' current labels: after a concession no longer the original ones.
    """
    words = {each: label_in_words(case, label) for each, label in positions.held.items()}
    return subject_slots(case, topics) | {
        "side": side.letter,
        "stance": side.stance,
        "own_answer": words.get(side, ""),
        "other_answer": words.get(other(side), ""),
        "contentiousness": contentiousness_level(level).slots(),
        "transcript": transcript(case, said, positions),
    }


def transcript(case: Case, said: Sequence[SideTurn], positions: Positions) -> list[dict[str, Any]]:
    """The debate so far, argument by argument, in chronological order."""
    words = positions.in_words(case)
    return [
        {"side": one.side.letter, "stance": words[one.side], "round": one.number, "topic": title, "text": text}
        for one in said
        for title, text in one.by_topic.items()
    ]
