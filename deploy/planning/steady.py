"""The time of any number of cases from a simulation of few: its start and its end as simulated, the rest at its pace.

Two steps make a run small. Where more debates are open than there is work for, four times as many as it takes are
enough: the others only wait. And a run of a hundredth of the cases under a hundredth of every bound takes as long, so
that what is left is divided until it fits. Then the cases beyond those simulated go at the pace, in calls per second,
that the simulated run had between its start and its end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from moot.actors.limits.concurrency import MOST
from moot.deploy.planning.bounds import Chosen, seconds_per_case
from moot.deploy.planning.programme import Programme
from moot.deploy.planning.scenario import Scenario
from moot.deploy.planning.simulate import simulate

_GENERATIONS, _START = 8, 2
"""How often the open debates are replaced in a simulated run, and how often before its start counts as over."""

_ROOMY = 4
_LEAST_OPEN, _MOST_OPEN, _LEAST_CALLS = 20, 400, 20


@dataclass(frozen=True, slots=True)
class Forecast:
    """A run as the simulation foresees it.

    Attributes:
        time_s: from the first opening to the last verdict.
        in_flight, open_debates: mean and 95th percentile: while cases are being opened, of a run that was not
            simulated whole.
        simulated: cases that were simulated.
        drawn: whether its cases were drawn one by one, as those of a run are; else each debate comes equally often.
    """

    time_s: float
    in_flight: tuple[float, float]
    open_debates: tuple[float, float]
    simulated: int
    drawn: bool


def forecast(
    programme: Programme,
    chosen: Chosen,
    scenario: Scenario,
    cases: int,
    most_calls: int,
    random: np.random.Generator,
    *,
    draws: int = 1,
) -> Forecast:
    """Simulate `cases` cases that are drawn from some debates.

    Args:
        programme: the pilot's debates.
        chosen: those that are drawn from.
        scenario: the bounds.
        cases: how many.
        most_calls: about as many calls are simulated; a run with fewer is simulated whole.
        random: draws the cases and their order.
        draws: over how many draws a run that is simulated whole is averaged, as far as `most_calls` allow: which
            few cases come, and which of them comes last, is chance.
    """
    calls = max(1.0, float(programme.calls[chosen].mean()))
    if cases * calls <= most_calls:
        times = max(1, min(draws, int(most_calls / (cases * calls))))
        courses = [simulate(programme, random.choice(chosen, cases).tolist(), scenario) for _ in range(times)]
        return Forecast(
            float(np.mean([course.time_s for course in courses])),
            _mean([course.in_flight for course in courses]),
            _mean([course.open_debates for course in courses]),
            cases,
            drawn=True,
        )
    small, roomy = _small(programme, chosen, scenario, cases, most_calls / calls)
    wanted = cases / small.shrunk
    places = max(1, round(small.max_open / small.shrunk))
    held = min(math.ceil(wanted), _GENERATIONS * places)
    course = simulate(programme, _spread(chosen, held, random), small, warm_up=_START * places)
    rest = max(0.0, wanted - held)
    per_case_s = course.time_s / held if course.calls_per_s is None else calls / course.calls_per_s
    # A bucket that was full at the start lets a short run go faster than a long one can.
    per_case_s = max(per_case_s, seconds_per_case(programme, chosen, scenario) * small.shrunk)
    in_flight = (course.in_flight[0] * small.shrunk, course.in_flight[1] * small.shrunk)
    open_debates = (course.open_debates[0] * small.max_open / places, course.open_debates[1] * small.max_open / places)
    if roomy:
        open_debates = (float(min(scenario.max_open, cases)),) * 2
    return Forecast(course.time_s + rest * per_case_s, in_flight, open_debates, held, drawn=False)


def _mean(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    first, second = np.mean(pairs, axis=0)
    return float(first), float(second)


def _small(
    programme: Programme, chosen: Chosen, scenario: Scenario, cases: int, most_cases: float
) -> tuple[Scenario, bool]:
    """The same run made small, and whether more debates may be open than there is work for."""
    places = min(scenario.max_open, cases)
    per_case_s, roomy = seconds_per_case(programme, chosen, scenario), False
    if per_case_s > 0.0:
        enough = max(_LEAST_OPEN, math.ceil(_ROOMY * float(programme.alone_s[chosen].mean()) / per_case_s))
        places, roomy = min(places, enough), enough < places
    most_open = min(_MOST_OPEN, max(_LEAST_OPEN, most_cases / _GENERATIONS))
    shrunk = places / round(min(places, most_open))  # so that a whole number is left, here and below
    calls = scenario.concurrency or MOST
    if shrunk > 1.0 and (scenario.concurrency is not None or scenario.adapts):
        shrunk = calls / max(min(calls, _LEAST_CALLS), round(calls / shrunk))
    return replace(scenario, max_open=places, shrunk=max(1.0, shrunk)), roomy


def _spread(chosen: Chosen, count: int, random: np.random.Generator) -> list[int]:
    """`count` debates in which each of those chosen comes as often as any other, up to one: what holds of a small
    simulated part then holds of the many cases that it stands for."""
    whole = [random.permutation(chosen) for _ in range(-(-count // len(chosen)))]
    return [int(number) for number in np.concatenate(whole)[:count]]
