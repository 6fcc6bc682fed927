"""Stopping rule: when the rounds end, with the reason as text."""

from __future__ import annotations

from moot.protocols.convergence import plateaued
from moot.protocols.socrasynth.events import SocraSynthStopped
from moot.protocols.socrasynth.sides import SIDES
from moot.protocols.socrasynth.state import SocraSynthRounds, Stop


def stop_due(rounds: SocraSynthRounds) -> Stop | None:
    """Reason why no further round follows unless a person requests one; None if one does.

    In this order: a side declined, or failed; both have the same answer; both are exhausted, or
    conceded; `max_rounds`; Gamma's plateau; the end of the schedule.
    """
    latest, settings = rounds.latest, rounds.settings
    if rounds.failed:
        return "declined" if "declined" in rounds.failed.values() else "turn-failed"
    if rounds.positions.agreed is not None:
        return "agreed"
    if len(latest) == len(SIDES) and all(one.finished or one.conceded for one in latest):
        return "both-done"
    if rounds.number >= settings.max_rounds:
        return "max_rounds"
    if plateaued(rounds.comparable_gammas, settings.patience, settings.min_delta):
        return "plateau"
    if rounds.scheduled is None:
        return "schedule-ended"
    return None


def stop_event(rounds: SocraSynthRounds, reason: Stop) -> SocraSynthStopped:
    """Event of the end of the rounds."""
    settings = rounds.settings
    return SocraSynthStopped(
        path="stop",
        reason=reason,
        round=rounds.number,
        kappa=rounds.kappa,
        gammas=list(rounds.gammas),
        patience=settings.patience,
        min_delta=settings.min_delta,
        max_rounds=settings.max_rounds,
        finished=[one.side.name for one in rounds.latest if one.finished or one.conceded],
        conceded=rounds.conceded,
    )


def stop_reason_text(reason: str, *, patience: int, min_delta: float, max_rounds: int) -> str:
    """Text of the reason why the rounds end; an unknown reason is returned unchanged.

    >>> stop_reason_text("plateau", patience=2, min_delta=0.01, max_rounds=5)
    'the quality of the arguments rose by less than 0.01 in 2 rounds'
    """
    return {
        "agreed": "both sides hold the same answer",
        "plateau": f"the quality of the arguments rose by less than {min_delta:g} in {patience} rounds",
        "schedule-ended": "the schedule of contentiousness came to its end",
        "both-done": "both sides said that they had no more to say",
        "max_rounds": f"no more than {max_rounds} were allowed",
        "ended-by-person": "a person ended them",
        "declined": "a side would not argue on",
        "turn-failed": "no usable reply came from a side",
    }.get(reason, reason)
