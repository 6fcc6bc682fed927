"""Duration of a run under each of its bounds, from means over a pilot's debates.

The slowest bound is the bottleneck. At the end the last debates run alone: a run limited by what all debates share
takes half a debate longer, and one with all slots full as much longer as its longest debate is longer than the others.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from moot.actors.limits.settings import PERMIT_TTL_S, WINDOW_S
from moot.deploy.studies.planning.pilot import Pilot
from moot.deploy.studies.planning.settings import Constraint, Scenario

Floats = npt.NDArray[np.float64]

REFILL_S = WINDOW_S + PERMIT_TTL_S
"""Window of a per-minute limit in seconds: a permit may be used for a second after its grant."""

_TAIL = 0.5


def seconds_by_bound(pilot: Pilot, weights: Floats, scenario: Scenario, cases: int) -> dict[Constraint, Floats]:
    """Seconds under each bound alone.

    Args:
        pilot: the pilot's debates.
        weights: `(draws, debates)`, each row's sum 1: frequency of each debate in a draw of the pilot.
        scenario: the bounds.
        cases: number of cases.

    Returns:
        By bound `(draws,)`; missing bounds are left out.
    """

    def most(by_model: Floats) -> Floats:
        """Mean use of the most used model, by draw: each model has bounds of its own."""
        found: Floats = (weights @ by_model).max(axis=1, initial=0.0)
        return found * cases

    found: dict[Constraint, Floats] = {"latency": _longest(pilot.alone_s, weights, cases)}
    if scenario.rpm is not None:
        found["rpm"] = most(pilot.requests) * REFILL_S / scenario.rpm
    if scenario.tpm is not None:
        found["tpm"] = most(pilot.tokens) * REFILL_S / scenario.tpm
    if scenario.concurrency is not None:
        found["concurrency"] = most(pilot.busy_s) / scenario.concurrency
    if scenario.cores is not None:
        found["cpu"] = (weights @ pilot.calls) * cases * scenario.cpu_s / scenario.cores
    if scenario.max_open < float("inf"):
        found["max_open"] = (weights @ pilot.alone_s) * cases / scenario.max_open
    return found


def time_s(pilot: Pilot, weights: Floats, scenario: Scenario, cases: int) -> Floats:
    """Seconds from the first opening to the last verdict, by draw; for the arguments see `seconds_by_bound`."""
    alone, mean = seconds_by_bound(pilot, weights, scenario, cases), weights @ pilot.alone_s
    shared = [seconds for name, seconds in alone.items() if name not in ("latency", "max_open")]
    found = alone["latency"]
    for seconds in shared:
        found = np.maximum(found, seconds + _TAIL * mean)
    if "max_open" in alone:
        places = int(min(scenario.max_open, cases))
        last = _longest(pilot.alone_s, weights, places) - mean * places / scenario.max_open
        found = np.maximum(found, alone["max_open"] + last)
    return found


def _longest(seconds: Floats, weights: Floats, cases: int) -> Floats:
    """Expected duration of the longest of n debates, by draw."""
    order = np.argsort(seconds)
    reached = np.minimum(1.0, np.cumsum(weights[:, order], axis=1)) ** float(cases)
    found: Floats = np.diff(reached, axis=1, prepend=0.0) @ seconds[order]
    return found


def binding_constraint(alone: Mapping[Constraint, float]) -> Constraint:
    """The bound that takes longest."""
    return max(alone, key=lambda name: alone[name])
