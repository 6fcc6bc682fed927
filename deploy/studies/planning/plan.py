"""Capacity plan (`moot plan`): time, cost, machines and bottleneck of a large run, from the record of a small one.

Whole debates are resampled (a bootstrap over the cases of the pilot), which preserves the correlation of duration and
cost. Intervals are prediction intervals: they include the sampling of the pilot's cases and of the planned ones.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moot.actors.debate.run_spec import Placement
from moot.actors.limits.concurrency import MOST
from moot.actors.models.prices import price_table
from moot.deploy.runs.validation import validate_model
from moot.deploy.studies.planning.caveats import beyond_pilot_caveat, caveats, failures_caveat
from moot.deploy.studies.planning.costs import BUSY_SHARE, ENGINE, MachineNeeds, machine_needs
from moot.deploy.studies.planning.pilot import Bools, Floats, Pilot, read_pilot
from moot.deploy.studies.planning.settings import Constraint, PlanSettings, Scenario
from moot.deploy.studies.planning.times import binding_constraint, seconds_by_bound, time_s
from moot.protocols.errors import ConfigError

LEVEL = 0.9
"""Nominal coverage of every interval."""

_MAX_OPEN = 200
_DRAWS = 2_000
_JEFFREYS = 0.5


class PlanEstimate(NamedTuple):
    """Estimate with its prediction interval."""

    value: float
    low: float
    high: float


class PlanTotals(NamedTuple):
    """Total use of all cases.

    Attributes:
        prompt_tokens, completion_tokens: of the calls with known usage; lower bounds if any is unknown.
        unconfirmed_tokens: upper bound of additional tokens, in attempts that may be billed without known usage.
        cost_usd: of the calls with known price and usage; None if there are none.
        calls_without_usage, calls_without_price: proportion of the calls.
        failed: number of cases.
        skipped: proportion of the cases.
    """

    calls: PlanEstimate
    requests: PlanEstimate
    prompt_tokens: PlanEstimate
    completion_tokens: PlanEstimate
    unconfirmed_tokens: float
    cost_usd: PlanEstimate | None
    calls_without_usage: float
    calls_without_price: float
    failed: PlanEstimate
    skipped: PlanEstimate


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Plan of a run of many cases, extrapolated from a pilot.

    Attributes:
        pilot: the pilot run.
        settings: settings of the plan.
        scenario, placement: planned bounds and placement.
        time_s: seconds from the opening of the first debate to the last verdict, without start and end of the engine.
        totals: calls, tokens, cost and failures.
        in_flight, open_debates: mean number of calls in flight, and of open debates.
        needs: cores, moderators and memory.
        needs_low, needs_high: ends of their intervals.
        cores_at_hand: available cores; None without a number of nodes.
        binding: bottleneck.
        alone_s: duration under each bound alone.
        relaxed_s: duration without the binding bound; None if `latency` binds.
        then_binding: bottleneck without the binding bound; None if `latency` binds.
        remarks: caveats: assumptions, and what the pilot does not show.
        warnings: reasons why the plan may be too optimistic.
    """

    pilot: Pilot
    settings: PlanSettings
    scenario: Scenario
    placement: Placement
    time_s: PlanEstimate
    totals: PlanTotals
    in_flight: PlanEstimate
    open_debates: PlanEstimate
    needs: MachineNeeds
    needs_low: MachineNeeds
    needs_high: MachineNeeds
    cores_at_hand: int | None
    binding: Constraint
    alone_s: Mapping[Constraint, float]
    relaxed_s: float | None
    then_binding: Constraint | None
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]


def plan(pilot: str | Path, *, prices: str | None = None, **settings: Any) -> RunPlan:
    """Plan a run of many cases from the record of a small run of the same kind.

    Args:
        pilot: folder or URI of the pilot run.
        prices: YAML file of prices that override those of the pilot.
        settings: see `PlanSettings`; `cases` is required.

    Raises:
        ConfigError: a setting or the URI is invalid; one line.
        RecordError: there is no run in the folder, or it cannot be read.
        UserError: the run cannot be planned from.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    typed = {name: f"--{name.replace('_', '-')}" for name in PlanSettings.model_fields}
    checked = validate_model(PlanSettings, given, typed=typed)
    table = None if prices is None else price_table(prices)
    return plan_of(read_pilot(pilot, prices=table, seed=checked.seed), checked)


def plan_of(pilot: Pilot, settings: PlanSettings) -> RunPlan:
    """Plan from a loaded pilot. Raises ConfigError for a bound that its record does not measure."""
    cases, random = settings.cases, np.random.default_rng(settings.seed)
    placement = settings.placement or _placement(pilot)
    scenario = _scenario(pilot, settings, placement)
    draws = _Bootstrap(pilot, cases, random)
    mean = draws.weights[:1]
    alone = {name: float(seconds[0]) for name, seconds in seconds_by_bound(pilot, mean, scenario, cases).items()}
    bound = binding_constraint(alone)
    relaxed = scenario.without(bound)
    seconds = time_s(pilot, draws.weights, scenario, cases)
    time = draws.estimate(seconds)
    used = _totals(pilot, draws, cases)
    most_calls = math.inf if settings.concurrency is None else settings.concurrency * len(pilot.models)
    peak = float(min(scenario.max_open, cases))
    under_way = draws.at_once(pilot.busy_s.sum(axis=1), seconds, most_calls)
    is_full = bound not in ("latency", "max_open")  # debates wait for shared resources, so that all slots are full
    in_flight = draws.estimate(under_way)
    open_debates = draws.estimate(
        np.full_like(seconds, peak) if is_full else draws.at_once(pilot.alone_s, seconds, peak)
    )
    calls = used.calls
    per_s = [calls.value / time.value, calls.low / time.high, calls.high / time.low] if time.low > 0.0 else [0.0] * 3
    needed, low, high = (_needs(each, pilot, settings, scenario, placement) for each in per_s)
    return RunPlan(
        pilot=pilot,
        settings=settings,
        scenario=scenario,
        placement=placement,
        time_s=time,
        totals=used,
        in_flight=in_flight,
        open_debates=open_debates,
        needs=needed,
        needs_low=low,
        needs_high=high,
        cores_at_hand=_cores_at_hand(settings),
        binding=bound,
        alone_s=alone,
        relaxed_s=None if bound == "latency" else float(time_s(pilot, mean, relaxed, cases)[0]),
        then_binding=None
        if bound == "latency"
        else binding_constraint({name: alone[name] for name in alone if name != bound}),
        remarks=tuple(
            caveats(
                pilot,
                settings,
                placement,
                without_usage=used.calls_without_usage,
                without_price=used.calls_without_price,
                has_cost=used.cost_usd is not None,
            )
        ),
        warnings=(*failures_caveat(pilot), *beyond_pilot_caveat(pilot, in_flight.value)),
    )


def _totals(pilot: Pilot, draws: _Bootstrap, cases: int) -> PlanTotals:
    calls = max(1.0, float(pilot.calls.sum()))
    is_priced = (pilot.calls_without_usage + pilot.calls_without_price < pilot.calls).any() or not pilot.calls.any()
    return PlanTotals(
        calls=draws.total(pilot.calls),
        requests=draws.total(pilot.requests.sum(axis=1)),
        prompt_tokens=draws.total(pilot.prompt_tokens),
        completion_tokens=draws.total(pilot.completion_tokens),
        unconfirmed_tokens=float(pilot.unconfirmed_tokens.mean()) * cases,
        cost_usd=draws.total(pilot.cost_usd) if is_priced else None,
        calls_without_usage=float(pilot.calls_without_usage.sum()) / calls,
        calls_without_price=float(pilot.calls_without_price.sum()) / calls,
        failed=draws.count(pilot.failed),
        skipped=PlanEstimate(*(each / cases for each in draws.count(pilot.skipped))),
    )


class _Bootstrap:
    """Bootstrap of the debates of a pilot, and draws of the planned cases from each resample."""

    def __init__(self, pilot: Pilot, cases: int, random: np.random.Generator) -> None:
        count = pilot.debates
        mean = np.full((1, count), 1.0 / count)
        self.weights: Floats = np.vstack([mean, random.multinomial(count, mean[0], size=_DRAWS) / count])
        self._cases, self._count, self._random = cases, count, random

    def at_once(self, seconds_each: Floats, seconds: Floats, most: float) -> Floats:
        """Mean concurrency by draw (Little's law).

        Args:
            seconds_each: seconds per debate of what is counted.
            seconds: duration of the run, by draw.
            most: upper bound.
        """
        amount = (self.weights @ seconds_each) * self._cases
        return np.minimum(most, np.divide(amount, seconds, out=np.zeros_like(seconds), where=seconds > 0.0))

    def estimate(self, by_draw: Floats) -> PlanEstimate:
        """Estimate of a statistic of the means over debates; its interval includes the sampling of pilot and cases."""
        value, drawn = float(by_draw[0]), by_draw[1:]
        middle = float(np.median(drawn))
        wider = math.sqrt(1.0 + self._count / self._cases)  # a variance of a mean is proportional to 1 / n
        return _interval(value, value * np.power(drawn / middle, wider) if middle > 0.0 else np.full_like(drawn, value))

    def total(self, by_debate: Floats) -> PlanEstimate:
        """Estimate of the sum over the planned cases."""
        means = self.weights[1:] @ by_debate
        spread = np.sqrt(np.maximum(0.0, self.weights[1:] @ by_debate**2 - means**2))
        noise = spread * math.sqrt(self._cases) * self._random.standard_normal(_DRAWS)
        return _interval(float(by_debate.mean()) * self._cases, np.maximum(0.0, means * self._cases + noise))

    def count(self, is_one: Bools) -> PlanEstimate:
        """Estimate of the number of cases of a kind.

        The value is the pilot's proportion; the interval is from the Jeffreys posterior, so that it is never [0, 0].
        """
        count = int(is_one.sum())
        shares = self._random.beta(count + _JEFFREYS, self._count - count + _JEFFREYS, size=_DRAWS)
        return _interval(count / self._count * self._cases, self._random.binomial(self._cases, shares).astype(float))


def _interval(value: float, drawn: Floats) -> PlanEstimate:
    low, high = np.quantile(drawn, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return PlanEstimate(value, min(value, float(low)), max(value, float(high)))


def _placement(pilot: Pilot) -> Placement:
    return "packed" if pilot.engine == "inline" or pilot.placement == "packed" else "actors"


def _needs(
    per_s: float, pilot: Pilot, settings: PlanSettings, scenario: Scenario, placement: Placement
) -> MachineNeeds:
    if scenario.cores is not None:
        per_s = min(per_s, scenario.cores / scenario.cpu_s)  # a draw may have more calls than the mean
    peak = float(min(scenario.max_open, settings.cases))
    return machine_needs(per_s, 1000.0 * scenario.cpu_s, peak, placement, pilot.log_probabilities, settings.nodes or 1)


def _scenario(pilot: Pilot, settings: PlanSettings, placement: Placement) -> Scenario:
    if settings.cores_per_node is not None and settings.nodes is None:
        raise ConfigError("--cores-per-node needs --nodes")
    if settings.limit_tpm is not None and not (pilot.calls_without_usage < pilot.calls).any():
        raise ConfigError(
            f"--limit-tpm: no server in {pilot.name} reported token usage, so that tokens cannot be planned"
        )
    cores = _cores_at_hand(settings)
    cpu_ms = settings.cpu_ms_per_call or ENGINE[placement, pilot.log_probabilities].cpu_ms
    return Scenario(
        rpm=settings.limit_rpm,
        tpm=settings.limit_tpm,
        concurrency=settings.concurrency or MOST,
        max_open=settings.max_open or pilot.max_open or _MAX_OPEN,
        cores=None if cores is None else BUSY_SHARE * cores,
        cpu_s=cpu_ms / 1000.0,
    )


def _cores_at_hand(settings: PlanSettings) -> int | None:
    """Cores of all nodes; None without a number of nodes."""
    return None if settings.nodes is None else settings.nodes * (settings.cores_per_node or os.cpu_count() or 1)
