"""Information-theoretic moderation: runs rounds, sets the contentiousness, and decides when a debate ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from moot.metrics.divergence import information_gain
from moot.protocols.convergence import (
    DistributionShift,
    Rest,
    convergence_status,
    distribution_shift,
    printed_convergence,
)
from moot.protocols.evince.events import EvinceRoundEnded, EvinceStopped, KappaChanged
from moot.protocols.evince.round_numbers import RoundNumbers, measure
from moot.protocols.evince.schedule import NextLevel, RoundSignals, first_level, next_level
from moot.protocols.evince.side_state import SideState
from moot.protocols.evince.turn_loop import TurnLoop
from moot.protocols.seeds import seeded
from moot.protocols.text.agreement_language import agreement_share

Floats = npt.NDArray[np.float64]

_FEW_SIDES = 4

AGAIN = "stop/again"
"""Path of the end of a second debate over retrieved documents, which has its own `max_rounds`."""

Reason = Literal["converged", "stalled", "printed", "max_rounds", "ensemble"]


@dataclass(frozen=True, slots=True)
class RoundResult:
    """Completed round.

    Attributes:
        number: 0 for the opening exchange.
        level: its contentiousness; None if none is stated.
        numbers: see `RoundNumbers`.
        crit: mean CRIT score of the sides, in [0, 1]; None unless every side spoke and has one.
        shift: how far the sides moved; None for the first round and if the set of sides changed.
        silent: sides whose turn failed; their unchanged position does not indicate convergence.
    """

    number: int
    level: float | None
    numbers: RoundNumbers
    crit: float | None
    shift: DistributionShift | None
    silent: tuple[str, ...] = ()

    @property
    def moves(self) -> dict[str, float | None] | None:
        """Total variation to the last distribution by side; None for a side that did not speak."""
        if self.shift is None:
            return None
        named = zip(self.numbers.names, self.shift.moves, strict=True)
        return {name: None if name in self.silent else move for name, move in named}

    def rest(self, epsilon: float, tau: float) -> Rest | None:
        """Whether the sides have converged or stalled; None if they still move, or one of them did not speak."""
        if self.shift is None or self.silent:
            return None
        return convergence_status(self.shift.moves, self.numbers.jsd_max, epsilon=epsilon, tau=tau)

    @property
    def comparable(self) -> bool:
        """Whether every side spoke both in this round and in the round before."""
        return self.shift is not None and not self.silent


@dataclass(slots=True)
class EvinceRounds:
    """Moderator of one debate.

    Args:
        loop: turn loop of the debate.
        ground: distances between the labels and "(other)"; None for 0/1.

    Attributes:
        completed: all completed rounds.
    """

    loop: TurnLoop
    ground: Floats | None
    completed: list[RoundResult] = field(default_factory=list)

    async def run(self) -> Reason:
        """Run rounds until the debate ends; a second call runs up to `max_rounds` more rounds, from the first level.

        Notes `round` and `contentiousness` per round, and `stop`.
        """
        settings = self.loop.settings
        again = bool(self.completed)
        level = first_level(settings.schedule, settings.kappa)
        if not settings.debates:
            await self.loop.open_independently()
            await self._take(0, level)
            self._note_stop("ensemble", 0, {}, again)
            return "ensemble"
        if again:
            self._note_reset(level)
        else:
            await self.loop.run_round(0, level)
            await self._take(0, level)
        for done in range(settings.max_rounds):
            # A second debate begins with a round at the first level, as the first one did with its opening exchange.
            steps = done - 1 if again else done
            if steps >= 0:
                level = self._turned(steps, level)
            number = self.completed[-1].number + 1
            await self.loop.run_round(number, level)
            found = await self._take(number, level)
            reason, numbers = self._ended(found, last=done == settings.max_rounds - 1)
            if reason is not None:
                if settings.crit_turns == "last":
                    await self.loop.judge_last_turns()
                self._note_stop(reason, number, numbers, again)
                return reason
        raise AssertionError("the last round always ends a debate")

    def _turned(self, steps: int, level: float | None) -> float | None:
        """Level of the next round, after `steps` steps of the schedule; noted with its inputs."""
        settings, last = self.loop.settings, self.completed[-1]
        signals = self._signals()
        if settings.schedule == "random":
            drawn = seeded(self.loop.floor.seed, f"kappa/{last.number + 1}")
            chosen = NextLevel(round(drawn.uniform(settings.kappa.floor, settings.kappa.start), 2), "drawn at random")
        else:
            most = settings.max_rounds
            chosen = next_level(
                settings.schedule, settings.kappa, done=steps, max_rounds=most, level=level, signals=signals
            )
        self.loop.floor.note(
            KappaChanged(
                before=level,
                after=chosen.level,
                schedule=settings.schedule,
                why=chosen.why,
                score=signals.score,
                disagreement=signals.disagreement,
                gain=signals.gain,
                quality=signals.quality,
                uncertainty=signals.uncertainty,
                path=f"round/{last.number}",
            )
        )
        return chosen.level

    def _note_reset(self, level: float | None) -> None:
        """Resets the contentiousness to its first level for a second debate."""
        last, schedule = self.completed[-1], self.loop.settings.schedule
        path, why = f"round/{last.number}", "debated once more"
        self.loop.floor.note(KappaChanged(before=last.level, after=level, schedule=schedule, why=why, path=path))

    def _signals(self) -> RoundSignals:
        last = self.completed[-1]
        before = self.completed[-2].numbers if len(self.completed) > 1 and last.comparable else None
        return last.numbers.signals(before, last.crit, self.loop.settings.top_k)

    async def _take(self, number: int, level: float | None) -> RoundResult:
        """Measure the round that has just ended, and note it."""
        settings = self.loop.settings
        side_states = self.loop.states()
        names = [side_state.name for side_state in side_states]
        rows = np.stack([side_state.cleaned.probabilities for side_state in side_states])
        numbers = await self._measured(names, rows)
        before = self.completed[-1] if self.completed and self.completed[-1].numbers.names == numbers.names else None
        moved = None if before is None else distribution_shift(before.numbers.rows, rows, settings.epsilon)
        scores = [side_state.crit for side_state in side_states]
        known = [score for score in scores if score is not None]
        silent = tuple(side_state.name for side_state in side_states if side_state.round != number)
        crit = fmean(known) if known and len(known) == len(scores) and not silent else None
        found = RoundResult(number, level, numbers, crit, moved, silent)
        data = numbers.record() | self._about(found, side_states)
        self.completed.append(found)
        score = self._signals().score
        self.loop.floor.note(EvinceRoundEnded(**data, round_score=score, path=f"round/{number}"))
        return found

    async def _measured(self, names: Sequence[str], rows: Floats) -> RoundNumbers:
        """Numbers of the round, in a thread if they need optimal transport or there are many pairs of sides."""
        epsilon = self.loop.settings.kl_epsilon
        if self.ground is None and len(names) <= _FEW_SIDES:
            return measure(names, rows, None, epsilon)
        return await self.loop.floor.compute(measure, names, rows, self.ground, epsilon)

    def _about(self, found: RoundResult, side_states: Sequence[SideState]) -> dict[str, Any]:
        """Data of the event `round` except the divergences between the sides' positions.

        The values of a side that did not speak in the round are unknown.
        """
        gain = None
        if found.comparable:
            gain = float(information_gain(self.completed[-1].numbers.mixed, found.numbers.mixed))
        return {
            "round": found.number,
            "order": self.loop.order,
            "kappa": found.level,
            "distributions": {side_state.name: side_state.cleaned.named() for side_state in side_states},
            "information_gain": gain,
            "entropy": {
                name: None if name in found.silent else entropy
                for name, entropy in zip(found.numbers.names, found.numbers.entropies, strict=True)
            },
            "crit": {each.name: None if each.name in found.silent else each.crit for each in side_states},
            "silent": list(found.silent),
            "moves": found.moves,
            "swapped": found.comparable and found.shift is not None and found.shift.swapped,
            "agreement_words": agreement_share(s.text for s in side_states if s.round == found.number),
            "failed": [path for path in self.loop.failed if path.startswith(f"round/{found.number}/")],
        }

    def _ended(self, found: RoundResult, *, last: bool) -> tuple[Reason | None, dict[str, Any]]:
        """Reason to end after a round, or None to continue, with the numbers of the decision."""
        settings, before = self.loop.settings, self.completed[-2]
        reason: Reason | None = None
        if settings.stop == "printed":
            fires, numbers = _printed(before, found, settings.printed_epsilon)
            reason = "printed" if fires and found.comparable else None
        else:
            reason = found.rest(settings.epsilon, settings.tau)
            jsd = found.numbers.jsd_max
            numbers = {"moves": found.moves, "jsd": jsd, "epsilon": settings.epsilon, "tau": settings.tau}
        return reason or ("max_rounds" if last else None), numbers

    def _note_stop(self, reason: Reason, number: int, numbers: dict[str, Any], again: bool) -> None:
        most, path = self.loop.settings.max_rounds, AGAIN if again else "stop"
        self.loop.floor.note(EvinceStopped(reason=reason, round=number, max_rounds=most, **numbers, path=path))


def _printed(before: RoundResult, found: RoundResult, epsilon: float) -> tuple[bool, dict[str, Any]]:
    """The rule of figure 7.1, with its numbers."""
    changes = {
        "wd_change": found.numbers.wd - before.numbers.wd,
        "mi_change": found.numbers.mi - before.numbers.mi,
        "jsd_change": found.numbers.jsd - before.numbers.jsd,
    }
    crit = None if found.crit is None or before.crit is None else found.crit - before.crit
    rest = printed_convergence(list(changes.values()), crit, epsilon=epsilon)
    return rest, {**changes, "crit_change": crit, "epsilon": epsilon}
