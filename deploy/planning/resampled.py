"""How far a plan would be another with another pilot of as many cases: small simulations of pilots like this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moot.deploy.planning.programme import Floats, Programme
from moot.deploy.planning.scenario import Scenario
from moot.deploy.planning.steady import Forecast, forecast
from moot.deploy.planning.totals import LEVEL, Estimate

RESAMPLES = 99
"""One less than a hundred, so that the ends of an interval are two of the draws, the fifth and the 95th."""

_LEAST_CALLS, _MOST_CALLS = 1_000, 5_000
"""Simulated for each draw: as many as the pilot has, within these bounds."""


@dataclass(frozen=True, slots=True)
class Resampled:
    """What other pilots would have made of the same plan; each by draw.

    Attributes:
        time_s, calls_per_s: of the run.
        in_flight, open_debates: mean and 95th percentile.
        widening: exponent that adds to the spread of a simulation in part what the draw of the run's cases adds.
    """

    time_s: Floats
    calls_per_s: Floats
    in_flight: tuple[Floats, Floats]
    open_debates: tuple[Floats, Floats]
    widening: Floats

    def around(self, value: float, draws: Floats) -> Estimate:
        """A figure with an interval as wide, in proportion, as that of the draws.

        Args:
            value: what is simulated in full.
            draws: the same of each draw.
        """
        middle = float(np.median(draws))
        if middle <= 0.0:
            return Estimate(value, value, value)
        low, high = ends((draws / middle) ** self.widening)
        return Estimate(value, value * min(1.0, low), value * max(1.0, high))

    def around_pair(self, values: tuple[float, float], draws: tuple[Floats, Floats]) -> tuple[Estimate, Estimate]:
        """As `around`, for a mean and a 95th percentile."""
        return self.around(values[0], draws[0]), self.around(values[1], draws[1])


def ends(draws: Floats) -> tuple[float, float]:
    """Between which one more draw lies with a probability of `LEVEL`.

    Of n draws the k-th smallest is above one more with a probability of k / (n + 1): quantiles that are interpolated
    between the smallest and the largest would hold less.
    """
    low, high = np.quantile(draws, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0], method="weibull")
    return float(low), float(high)


def resampled(
    programme: Programme,
    scenario: Scenario,
    cases: int,
    random: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    most_calls: int | None = None,
) -> Resampled:
    """Simulate the plan with pilots that are drawn from this one with replacement.

    Args:
        programme: the pilot's debates.
        scenario: the bounds.
        cases: how many.
        random: draws.
        resamples: how many pilots are drawn.
        most_calls: about as many calls are simulated for each; None goes by the size of the pilot.
    """
    if most_calls is None:
        most_calls = int(min(_MOST_CALLS, max(_LEAST_CALLS, programme.calls.sum())))
    count = len(programme.parts)
    drawn = [random.choice(count, count) for _ in range(resamples)]
    seen = [forecast(programme, chosen, scenario, cases, most_calls, random) for chosen in drawn]
    calls = np.array([programme.calls[chosen].mean() for chosen in drawn]) * cases
    time_s = np.array([each.time_s for each in seen])
    return Resampled(
        time_s=time_s,
        calls_per_s=np.divide(calls, time_s, out=np.zeros(resamples), where=time_s > 0.0),
        in_flight=_columns([each.in_flight for each in seen]),
        open_debates=_columns([each.open_debates for each in seen]),
        widening=np.array([_widening(each, count, cases) for each in seen]),
    )


def _widening(seen: Forecast, count: int, cases: int) -> float:
    """A run varies by the pilot that it is planned from and by its own cases; a simulation in part by the pilot alone.

    Variances of means go by the inverse of how many there are.
    """
    return 1.0 if seen.drawn else float(np.sqrt(1.0 + count / cases))


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    table = np.array(pairs, float)
    return table[:, 0], table[:, 1]
