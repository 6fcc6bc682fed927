"""The turns of a debate: requests to the sides, readings by the judges, and the quality gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from moot.protocols.case import Case, case_slots
from moot.protocols.contentiousness import contentiousness_level
from moot.protocols.crit.evaluate import crit_all
from moot.protocols.errors import QuorumFailed
from moot.protocols.evince.events import (
    DistributionRepair,
    DistributionStated,
    QualityGateDecided,
    QualityGateDecision,
)
from moot.protocols.evince.settings import EvinceSettings, QualityGateSettings
from moot.protocols.evince.side_state import SideState, Stated, reply_for, side_state_of
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure
from moot.protocols.seeds import seeded

NO_GATE = "the gate is off"


def quality_gate(
    crit: float | None, earlier: Sequence[float], quality: QualityGateSettings, *, on: bool
) -> QualityGateDecision:
    """Accept or withhold an argument; see `QualityGateSettings` for the threshold.

    An argument of unknown score passes: a judge's failure is not evidence against it.

    Args:
        crit: the turn's score.
        earlier: known scores of all sides in earlier rounds.
    """
    if not on:
        return QualityGateDecision(on=False, threshold=None, crit=crit, passed=True, why=NO_GATE)
    bar = max(quality.threshold, fmean(earlier) - quality.margin) if earlier else quality.threshold
    if crit is None:
        return QualityGateDecision(on=True, threshold=bar, crit=None, passed=True, why="no judge gave a score")
    passed = crit >= bar
    why = "at or above the bar" if passed else "below the bar"
    return QualityGateDecision(on=True, threshold=bar, crit=crit, passed=passed, why=why)


OPENING = "evince/opening"
RESPONSE = "evince/response"


@dataclass(slots=True)
class TurnLoop:
    """Turn loop of one debate: its turns, and its failures.

    Args:
        case, floor, settings: of the debate.

    Attributes:
        turns: every valid turn, in order.
        failed: paths of turns that failed.
        evidence: retrieved texts that the prompts of the sides show, but not those of the judges.
    """

    case: Case
    floor: Floor
    settings: EvinceSettings
    turns: list[SideState] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    evidence: tuple[str, ...] = ()
    _read: set[str] = field(default_factory=set)

    @property
    def names(self) -> list[str]:
        """Role names of the sides."""
        return [f"agent/{i}" for i in range(self.settings.agents)]

    @property
    def order(self) -> list[str]:
        """The sides in speaking order."""
        wanted = self.settings.order
        if wanted == "seeded":
            wanted = seeded(self.floor.seed, "order").choice(["given", "reversed"])
        return self.names if wanted == "given" else self.names[::-1]

    def last(self, name: str) -> SideState | None:
        """A side's last valid turn."""
        return next((one for one in reversed(self.turns) if one.name == name), None)

    def states(self) -> list[SideState]:
        """Last valid turn of every side with one, in the sides' order."""
        return [side_state for name in self.names if (side_state := self.last(name)) is not None]

    async def open_independently(self) -> None:
        """Ask every side independently: the ensemble, or a single side.

        Raises `QuorumFailed` with fewer than two valid answers, or without that of a single side.
        """
        turns = await self.floor.ask_all([self._opening(name) for name in self.names])
        for turn in turns:
            if isinstance(turn, Failure):
                self.failed.append(turn.path)
            else:
                self._add(side_state_of(self.case, 0, turn))
        self._check_quorum()
        if self.settings.judged:
            await self._have_read(self.states(), gated=False)

    async def run_round(self, number: int, level: float | None) -> None:
        """One round: the sides speak one after another, each with the previous turns.

        A side with a failed turn keeps its last. Raises `QuorumFailed` if fewer than two sides have valid turns after
        the opening exchange.

        Args:
            number: of the round; 0 is the opening exchange, in which the first side speaks without a level.
            level: contentiousness; None: not stated in prompts.
        """
        spoken = []
        for name in self.order:
            request = self._response(name, number, level) if self.turns else self._opening(name)
            (turn,) = await self.floor.ask_all([request])
            if isinstance(turn, Failure):
                self.failed.append(turn.path)
                continue
            side_state = self._add(side_state_of(self.case, number, turn))
            spoken.append(name)
            if self.settings.gate:
                await self._have_read([side_state], gated=True)
        if number == 0:
            self._check_quorum()
        if self.settings.crit_turns == "every" and not self.settings.gate:
            await self._have_read([side_state for side_state in self.states() if side_state.name in spoken], gated=True)

    async def judge_last_turns(self) -> None:
        """Let the judges read every side's last turn, if still unread."""
        unread = [side_state for side_state in self.states() if _path(side_state) not in self._read]
        await self._have_read(unread, gated=False)

    def _check_quorum(self) -> None:
        if len(self.states()) < min(2, self.settings.agents):
            failed = ", ".join(self.failed)
            raise QuorumFailed(f"{len(self.states())} of {len(self.names)} sides gave a distribution ({failed})")

    def _add(self, side_state: SideState) -> SideState:
        self.turns.append(side_state)
        cleaned = side_state.cleaned
        changes = [DistributionRepair(**change) for change in cleaned.changes]
        self.floor.note(DistributionStated(cleaned=cleaned.named(), changes=changes, path=_path(side_state)))
        return side_state

    async def _have_read(self, side_states: Sequence[SideState], *, gated: bool) -> None:
        """Let the judges read the turns concurrently; notes and keeps the gate's decisions."""
        documents = [(f"crit/{_path(s)}", s.document(self.case)) for s in side_states]
        self._read.update(map(_path, side_states))
        results = await crit_all(self.floor, documents, self.settings.crit)
        for side_state, result in zip(side_states, results, strict=True):
            earlier = self._earlier_scores(side_state.round)
            decision = quality_gate(result.score, earlier, self.settings.quality, on=self.settings.gate and gated)
            if gated:
                self.floor.note(QualityGateDecided(**decision.model_dump(), path=_path(side_state)))
            read = replace(
                side_state,
                crit=result.score,
                weak=result.weak,
                contradicted=result.contradicted,
                passed=decision.passed,
            )
            self.turns[self.turns.index(side_state)] = read

    def _earlier_scores(self, number: int) -> list[float]:
        """Known scores of the rounds before a round; within a round no side is measured by the first speaker."""
        return [one.crit for one in self.turns if one.round < number and one.crit is not None]

    def shown_arguments(self) -> list[str]:
        """Last arguments of every side that passed the gate; empty if sides see only distributions."""
        full = self.settings.history == "full"
        return [side_state.text for side_state in self.states() if side_state.passed and full]

    def _slots(self) -> dict[str, Any]:
        more = {"top_k": self._top_k, "answer_first": self.settings.answer_first, "evidence": list(self.evidence)}
        return case_slots(self.case) | more

    @property
    def _top_k(self) -> int:
        return min(self.settings.top_k, len(self.case.labels or ()))

    def _opening(self, name: str) -> Request[Stated]:
        wanted = reply_for(answer_first=self.settings.answer_first, rebut=False)
        return Request(name, OPENING, self._slots(), wanted, f"round/0/{name}", images=self.case.images)

    def _response(self, name: str, number: int, level: float | None) -> Request[Stated]:
        own = self.last(name)
        full = self.settings.history == "full"
        latest = [self.last(other) for other in self.names if other != name]
        others = [other for other in latest if other is not None]
        current = {id(side_state) for side_state in (own, *others)}
        earlier = [side_state for side_state in self.turns if id(side_state) not in current] if full else []
        rebut = full and any(one.passed for one in (*others, *earlier) if one.name != name)
        slots = self._slots() | {
            "round": number,
            "contentiousness": None if level is None else contentiousness_level(level).slots(),
            "own": None if own is None else own.shown(to_others=False),
            "others": [other.shown(with_text=full) for other in others],
            "earlier": [side_state.shown(to_others=side_state.name != name) for side_state in earlier],
            "weak": [] if own is None else list(own.weak),
            "contradicted": [] if own is None else list(own.contradicted),
            "rebut": rebut,
        }
        wanted = reply_for(answer_first=self.settings.answer_first, rebut=rebut)
        return Request(name, RESPONSE, slots, wanted, f"round/{number}/{name}", images=self.case.images)


def _path(side_state: SideState) -> str:
    return f"round/{side_state.round}/{side_state.name}"
