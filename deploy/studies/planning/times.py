"""Duration of a run under each of its bounds, from means over the debates of a pilot.

The slowest bound is the bottleneck. The last debates run alone. A run limited by a resource that all debates share
therefore takes half a debate longer; one with all slots full takes longer by the difference between its longest debate
and the mean.
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
"""Effective window of a per-minute limit in seconds: a permit is valid for a second after its grant."""

_TAIL = 0.5


def seconds_by_bound(pilot: Pilot, weights: Floats, scenario: Scenario, cases: int) -> dict[Constraint, Floats]:
    """Duration in seconds under each bound alone.

    Args:
        pilot: the pilot's debates.
        weights: `(draws, debates)`, proportion of each debate in a resample of the pilot; rows sum to 1.
        scenario: the bounds.
        cases: number of cases.

    Returns:
        `(draws,)` by bound; without the bounds that the scenario lacks.
    """

    def most(by_model: Floats) -> Floats:
        """Use of the most used model, by draw; each model has its own bounds."""
        per_case: Floats = (weights @ by_model).max(axis=1, initial=0.0)
        return per_case * cases

    seconds: dict[Constraint, Floats] = {"latency": _longest(pilot.alone_s, weights, cases)}
    if scenario.rpm is not None:
        seconds["rpm"] = most(pilot.requests) * REFILL_S / scenario.rpm
    if scenario.tpm is not None:
        seconds["tpm"] = most(pilot.tokens) * REFILL_S / scenario.tpm
    if scenario.concurrency is not None:
        seconds["concurrency"] = most(pilot.busy_s) / scenario.concurrency
    if scenario.cores is not None:
        seconds["cpu"] = (weights @ pilot.calls) * cases * scenario.cpu_s / scenario.cores
    if scenario.max_open < float("inf"):
        seconds["max_open"] = (weights @ pilot.alone_s) * cases / scenario.max_open
    return seconds


def time_s(pilot: Pilot, weights: Floats, scenario: Scenario, cases: int) -> Floats:
    """Seconds from the first opening to the last verdict, by draw; for the arguments see `seconds_by_bound`."""
    alone, mean = seconds_by_bound(pilot, weights, scenario, cases), weights @ pilot.alone_s
    shared = [seconds for name, seconds in alone.items() if name not in ("latency", "max_open")]
    total = alone["latency"]
    for seconds in shared:
        total = np.maximum(total, seconds + _TAIL * mean)
    if "max_open" in alone:
        slots = int(min(scenario.max_open, cases))
        last = _longest(pilot.alone_s, weights, slots) - mean * slots / scenario.max_open
        total = np.maximum(total, alone["max_open"] + last)
    return total


def _longest(seconds: Floats, weights: Floats, cases: int) -> Floats:
    """Expected duration of the longest of n debates, by draw."""
    order = np.argsort(seconds)
    reached = np.minimum(1.0, np.cumsum(weights[:, order], axis=1)) ** float(cases)
    expected: Floats = np.diff(reached, axis=1, prepend=0.0) @ seconds[order]
    return expected


def binding_constraint(alone: Mapping[Constraint, float]) -> Constraint:
    """Bottleneck: the bound with the longest duration."""
    return max(alone, key=lambda name: alone[name])
