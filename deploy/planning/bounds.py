"""How long a run takes by each of its bounds alone; the longest of these times names what holds it back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from moot.actors.limits.concurrency import MOST
from moot.actors.limits.settings import PERMIT_TTL_S, WINDOW_S
from moot.deploy.planning.programme import Floats, Programme
from moot.deploy.planning.scenario import Constraint, Scenario

Chosen = npt.NDArray[np.int64]
"""Numbers of debates, each as often as it counts."""

REFILL_S = WINDOW_S + PERMIT_TTL_S
"""Within which a limit per minute is granted once: a permit may be used for a second after its grant."""


def alone_s(programme: Programme, chosen: Chosen, scenario: Scenario, cases: int) -> dict[Constraint, float]:
    """Seconds by each bound if nothing else held the run back; the run takes at least as long as the longest.

    Args:
        programme: the pilot's debates.
        chosen: what a case is like, on average over these.
        scenario: the bounds.
        cases: how many.
    """
    found: dict[Constraint, float] = {"latency": _longest(programme.alone_s[chosen], cases)}
    for name, seconds in _rates(programme, chosen, scenario).items():
        found[name] = seconds * cases
    found["max_open"] = float(programme.alone_s[chosen].mean()) * cases / scenario.max_open
    return found


def seconds_per_case(programme: Programme, chosen: Chosen, scenario: Scenario) -> float:
    """The most that any bound other than `max_open` lets a case take, on average; 0 where none binds."""
    return max(_rates(programme, chosen, scenario).values(), default=0.0)


def _rates(programme: Programme, chosen: Chosen, scenario: Scenario) -> dict[Constraint, float]:
    """Mean seconds that a case takes of each bound that is shared by all."""
    found: dict[Constraint, float] = {}
    if scenario.rpm is not None:
        found["rpm"] = _most(programme.requests, chosen) * REFILL_S / scenario.rpm
    if scenario.tpm is not None:
        found["tpm"] = _most(programme.tokens, chosen) * REFILL_S / scenario.tpm
    if scenario.concurrency is not None or scenario.adapts:
        found["concurrency"] = _most(programme.busy_s, chosen) / (scenario.concurrency or MOST)
    if scenario.cores is not None:
        found["cpu"] = float(programme.calls[chosen].mean()) * scenario.cpu_s / scenario.cores
    return found


def _most(by_model: Floats, chosen: Chosen) -> float:
    """Of the model that is asked most: each has bounds of its own."""
    return float(by_model[chosen].mean(axis=0).max(initial=0.0))


def _longest(seconds: Floats, cases: int) -> float:
    """Expected length of the longest of so many debates that are drawn from these."""
    ordered = np.sort(seconds)
    reached = (np.arange(1, len(ordered) + 1) / len(ordered)) ** float(cases)
    return float(ordered @ np.diff(reached, prepend=0.0))


def binding(alone: dict[Constraint, float]) -> Constraint:
    """What takes longest."""
    return max(alone, key=lambda name: alone[name])
