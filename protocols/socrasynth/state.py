"""State of a debate's rounds: turns, current answers, and the slots of the next turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeVar

from pydantic import BaseModel

from moot.protocols.case import Case, Image
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Decoding, Slots
from moot.protocols.socrasynth.debater_slots import Positions, debater_slots
from moot.protocols.socrasynth.events import SideConceded
from moot.protocols.socrasynth.quality import ArgumentQuality
from moot.protocols.socrasynth.schedule import next_level
from moot.protocols.socrasynth.settings import SocraSynthSettings
from moot.protocols.socrasynth.sides import Side, SideTurn, Topic, open_answers

Stop = Literal[
    "agreed", "plateau", "schedule-ended", "both-done", "max_rounds", "ended-by-person", "declined", "turn-failed"
]
"""Reason why the rounds ended; `agreed`: both sides have the same answer, `declined`: a side stopped arguing,
`turn-failed`: it gave no valid reply."""

R = TypeVar("R", bound=BaseModel)


@dataclass(slots=True)
class SocraSynthRounds:
    """Completed rounds of a debate.

    Attributes:
        case, floor, settings: of the debate.
        topics: current topics; a person may have edited them.
        kappa: contentiousness of the last round.
        base: the level from which contentiousness falls: `kappa.start`, or the one that a person set last.
        turns: all turns, in order.
        number: number of the last round; 0 after the opening.
        gammas: one per round.
        quality: CRIT of the last round.
        failed: of the last round, by role: the kind of failure, `declined` or `off-topic`.
        models: models of the sides.
        positions: on a closed list, each side's original and current answer.
        stop: why the rounds ended; None before the end.
    """

    case: Case
    floor: Floor
    settings: SocraSynthSettings
    topics: tuple[Topic, ...]
    kappa: float
    base: float
    turns: list[SideTurn] = field(default_factory=list)
    number: int = 0
    gammas: list[float | None] = field(default_factory=list)
    quality: ArgumentQuality = field(default_factory=lambda: ArgumentQuality({}))
    failed: dict[str, str] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    positions: Positions = field(default_factory=Positions)
    stop: Stop | None = None

    @property
    def latest(self) -> list[SideTurn]:
        """Turns of the last round."""
        return [one for one in self.turns if one.number == self.number]

    @property
    def conceded(self) -> list[str]:
        """Roles that conceded in any round."""
        return list(dict.fromkeys(one.side.name for one in self.turns if one.conceded))

    @property
    def scheduled(self) -> float | None:
        """Level of the next round; None if the schedule has ended."""
        return next_level(self.settings.schedule, self.number + 1, self.kappa, self.settings.kappa.delta)

    @property
    def closing_level(self) -> float:
        """Level of the closing statements: it does not follow the rounds' fall, for the panel judges opponents."""
        closing = self.settings.kappa.closing
        return self.base if closing is None else closing

    @property
    def blind(self) -> bool:
        """Whether both sides open at once; on a closed list always."""
        return bool(open_answers(self.case)) or self.settings.openings == "blind"

    @property
    def comparable_gammas(self) -> list[float | None]:
        """Gamma of the rounds whose turns were read against the opponent's: an answered opening was not."""
        return self.gammas if self.blind else self.gammas[1:]

    def decoding_at(self, kappa: float) -> Decoding | None:
        """Decoding of a side's turn at a contentiousness; None: its role's."""
        if self.settings.temperature is None:
            return None
        return Decoding(temperature=self.settings.temperature * kappa, max_tokens=self.settings.max_tokens)

    def request(
        self,
        side: Side,
        template: str,
        reply: type[R],
        step: str,
        *,
        kappa: float | None = None,
        images: Sequence[Image] = (),
        more: Slots = MappingProxyType({}),
    ) -> Request[R]:
        """Request for a side's turn at a contentiousness, by default that of the last round.

        Args:
            step: start of the path, `{step}/agent/I`.
            more: slots in addition to the common ones of a side, or replacing them.
        """
        level = self.kappa if kappa is None else kappa
        slots = debater_slots(self.case, self.topics, side, level, self.turns, self.positions) | dict(more)
        decoding = self.decoding_at(level)
        return Request(side.name, template, slots, reply, f"{step}/{side.name}", images=images, decoding=decoding)

    def note_concession(self, side: Side, path: str) -> None:
        """Note a concession of a side."""
        self.floor.note(SideConceded(side=side.letter, round=self.number, path=path))
