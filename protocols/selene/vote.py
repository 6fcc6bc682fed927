"""A plurality vote of the agents, which says when it was a tie and what broke it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from moot.protocols.selene.stand import Stand

TIED = "vote-tied"
"""The flag of a verdict that a tie-break chose."""


@dataclass(frozen=True, slots=True)
class Votes:
    """The votes for one answer: how many, and the mean stated confidence of those who gave it, in [0, 1]."""

    answer: str
    count: int
    stated: float


@dataclass(frozen=True, slots=True)
class Ballot:
    """A vote and what came of it.

    Attributes:
        answer: the most frequent answer, or the one that the tie-break chose.
        votes: of every answer, the most frequent first.
        tied: the answers that share the most votes; empty when one has more than any other.
        tie_broken_by: what decided between them; empty when nothing had to.
    """

    answer: str
    votes: tuple[Votes, ...]
    tied: tuple[str, ...] = ()
    tie_broken_by: Literal["", "stated_confidence", "seed"] = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """`vote-tied` where several answers share the most votes."""
        return (TIED,) if self.tied else ()

    def record(self) -> dict[str, Any]:
        """The data of the event `vote`: `votes` (`answer`, `count`, `stated`), `tied`, `tie_broken_by`, `answer`."""
        return {
            "votes": [{"answer": each.answer, "count": each.count, "stated": each.stated} for each in self.votes],
            "tied": list(self.tied),
            "tie_broken_by": self.tie_broken_by,
            "answer": self.answer,
        }


def vote(stands: Sequence[Stand], chance: random.Random) -> Ballot:
    """The most frequent answer; ties by the higher mean stated confidence, then by `chance`."""
    stated: dict[str, list[float]] = {}
    for stand in stands:
        stated.setdefault(stand.answer, []).append(stand.confidence)
    counted = [Votes(answer, len(of), round(fmean(of), 12)) for answer, of in stated.items()]
    votes = tuple(sorted(counted, key=lambda each: (-each.count, each.answer)))
    leading = [each for each in votes if each.count == votes[0].count]
    if len(leading) == 1:
        return Ballot(votes[0].answer, votes)
    tied = tuple(each.answer for each in leading)
    surest = max(each.stated for each in leading)
    best = [each.answer for each in leading if each.stated == surest]
    if len(best) == 1:
        return Ballot(best[0], votes, tied, "stated_confidence")
    return Ballot(chance.choice(best), votes, tied, "seed")
