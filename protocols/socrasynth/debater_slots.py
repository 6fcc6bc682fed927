"""What the prompts of a side take: the subject, who it is, how contentious, and the debate so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moot.protocols.case import Case, label_in_words
from moot.protocols.contentiousness import dial
from moot.protocols.socrasynth.positions import Positions
from moot.protocols.socrasynth.sides import Said, Side, Topic, other, subject_slots


def debater_slots(
    case: Case, topics: Sequence[Topic], side: Side, level: float, said: Sequence[Said], positions: Positions
) -> dict[str, Any]:
    """The slots of a side's templates; `own_answer` and `other_answer` are empty unless the sides have named theirs.

    They are what the sides hold now: after a concession no longer what they had named.
    """
    words = {each: label_in_words(case, label) for each, label in positions.held.items()}
    return subject_slots(case, topics) | {
        "side": side.letter,
        "stance": side.stance,
        "own_answer": words.get(side, ""),
        "other_answer": words.get(other(side), ""),
        "contentiousness": dial(level).slots(),
        "transcript": transcript(case, said, positions),
    }


def transcript(case: Case, said: Sequence[Said], positions: Positions) -> list[dict[str, Any]]:
    """The debate so far, argument by argument, in the order in which it was held."""
    words = positions.in_words(case)
    return [
        {"side": one.side.letter, "stance": words[one.side], "round": one.number, "topic": title, "text": text}
        for one in said
        for title, text in one.by_topic.items()
    ]
