"""`moot plan`: time, cost, calls in flight, processes and memory of a large run, and what holds it back."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from moot.actors.models.prices import price_table
from moot.actors.spec import Placement
from moot.deploy.planning.bounds import Chosen, alone_s, binding
from moot.deploy.planning.costs import BUSY_SHARE, ENGINE, Needs, needs
from moot.deploy.planning.pilot import Pilot
from moot.deploy.planning.programme import Programme, programme_of
from moot.deploy.planning.read import read_pilot
from moot.deploy.planning.remarks import beyond_pilot, of_failures, remarks
from moot.deploy.planning.resampled import resampled
from moot.deploy.planning.scenario import Constraint, Scenario
from moot.deploy.planning.settings import PlanSettings
from moot.deploy.planning.steady import forecast
from moot.deploy.planning.totals import LEVEL, Estimate, Totals, totals
from moot.deploy.running.validated import validated
from moot.protocols.errors import ConfigError

_MAX_OPEN = 200
_CALLS, _CALLS_RELAXED = 80_000, 30_000
_DRAWS = 25
_RAMP = 1.1
"""Without its growth from 32 on, the adapted number of calls under way would have to save a tenth to be what binds."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run of many cases would take, going by a pilot.

    Attributes:
        pilot: the folder of the run that is gone by, or its URI.
        settings: what was asked; scenario: the bounds that were planned with.
        pilot_debates: how many the plan rests on.
        time_s: from the first debate's opening to the last verdict; neither start nor end of the engine is in it.
        totals: calls, tokens, money, failures.
        in_flight, open_debates: mean and 95th percentile, each with an interval.
        needs: cores, moderators, memory; cores_at_hand: None when no nodes were named.
        needs_low, needs_high: the ends of their intervals.
        binding: what holds the run back.
        alone_s: how long it would take by each bound alone.
        relaxed_s: the time without the bound that binds; None where `latency` does.
        then_binding: what would hold it back then.
        simulated: cases that were simulated; the others go at the same pace.
        level: coverage of the intervals.
        remarks: what a reader must know: what was assumed, and what the pilot could not say.
        warnings: why the plan may promise too much.
    """

    pilot: str
    protocol: str
    task: str
    models: tuple[str, ...]
    settings: PlanSettings
    scenario: Scenario
    placement: Placement
    pilot_debates: int
    time_s: Estimate
    totals: Totals
    in_flight: tuple[Estimate, Estimate]
    open_debates: tuple[Estimate, Estimate]
    needs: Needs
    needs_low: Needs
    needs_high: Needs
    cores_at_hand: int | None
    binding: Constraint
    alone_s: Mapping[Constraint, float]
    relaxed_s: float | None
    then_binding: Constraint | None
    simulated: int
    level: float
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]


def plan(pilot: str | Path, *, prices: str | None = None, **settings: Any) -> RunPlan:
    """Plan a run of many cases from the record of a small one of the same kind.

    Args:
        pilot: folder of the run to go by, or its URI.
        prices: a YAML file of prices, over those of the pilot.
        settings: see `PlanSettings`; `cases` is needed.

    Raises:
        ConfigError: a setting is wrong, in one line, or the URI is.
        RecordError: there is no run in the folder, or it cannot be read.
        UserError: the run has nothing to plan from.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    typed = {name: f"--{name.replace('_', '-')}" for name in PlanSettings.model_fields}
    wanted = validated(PlanSettings, given, typed=typed)
    table = None if prices is None else price_table(prices)
    return plan_of(read_pilot(pilot, prices=table, seed=wanted.seed), wanted)


def plan_of(pilot: Pilot, settings: PlanSettings) -> RunPlan:
    """Plan from a pilot that has been read. Raises ConfigError where its record cannot say what a bound means."""
    programme, random = programme_of(pilot), np.random.default_rng(settings.seed)
    placement = settings.placement or _placement(pilot)
    scenario = _scenario(pilot, settings, placement)
    everyone = np.arange(len(pilot.debates))
    alone = alone_s(programme, everyone, scenario, settings.cases)
    seen = forecast(programme, everyone, scenario, settings.cases, _CALLS, random, draws=_DRAWS)
    bound = binding(alone)
    if scenario.adapts and scenario.concurrency is None and seen.time_s > _RAMP * alone[bound]:
        unbounded = scenario.without("concurrency", settings.cases)
        at_once = forecast(programme, everyone, unbounded, settings.cases, _CALLS_RELAXED, random, draws=_DRAWS)
        bound = "concurrency" if seen.time_s > _RAMP * at_once.time_s else bound
    relaxed_s, then = _relaxed(programme, everyone, scenario, settings.cases, bound, random)
    used = totals(pilot, settings.cases, random)
    others = resampled(programme, scenario, settings.cases, random)
    per_s = others.around(used.calls.value / seen.time_s if seen.time_s > 0.0 else 0.0, others.calls_per_s)
    needed, needed_low, needed_high = (_needs(each, pilot, settings, scenario, placement) for each in per_s)
    in_flight = _at_most(
        math.inf if scenario.concurrency is None else scenario.concurrency * len(pilot.models),
        others.around_pair(seen.in_flight, others.in_flight),
    )
    return RunPlan(
        pilot=pilot.name,
        protocol=pilot.protocol,
        task=pilot.task,
        models=pilot.models,
        settings=settings,
        scenario=scenario,
        placement=placement,
        pilot_debates=len(pilot.debates),
        # By the cases that it draws a simulation may end before what each bound takes on average.
        time_s=others.around(max(seen.time_s, *alone.values()), others.time_s),
        totals=used,
        in_flight=in_flight,
        open_debates=_at_most(scenario.max_open, others.around_pair(seen.open_debates, others.open_debates)),
        needs=needed,
        needs_low=needed_low,
        needs_high=needed_high,
        cores_at_hand=_cores_at_hand(settings),
        binding=bound,
        alone_s=alone,
        relaxed_s=relaxed_s,
        then_binding=then,
        simulated=seen.simulated,
        level=LEVEL,
        remarks=tuple(remarks(pilot, settings, placement, used)),
        warnings=(*of_failures(pilot), *beyond_pilot(pilot, in_flight[1].value)),
    )


def _at_most(bound: float, pair: tuple[Estimate, Estimate]) -> tuple[Estimate, Estimate]:
    """The same within a bound: an interval that is as wide as that of the draws could go beyond."""
    mean, most = (Estimate(*(min(bound, end) for end in each)) for each in pair)
    return mean, most


def _placement(pilot: Pilot) -> Placement:
    return "packed" if pilot.engine == "inline" or pilot.placement == "packed" else "actors"


def _needs(per_s: float, pilot: Pilot, settings: PlanSettings, scenario: Scenario, placement: Placement) -> Needs:
    if scenario.cores is not None:
        per_s = min(per_s, scenario.cores / scenario.cpu_s)  # a draw may have a few calls more than are on average
    peak = float(min(scenario.max_open, settings.cases))
    cpu_ms, nodes = 1000.0 * scenario.cpu_s, settings.nodes or 1
    return needs(per_s, cpu_ms, peak, placement, pilot.log_probabilities, nodes)


def _scenario(pilot: Pilot, settings: PlanSettings, placement: Placement) -> Scenario:
    if settings.cores_per_node is not None and settings.nodes is None:
        raise ConfigError("--cores-per-node goes with --nodes only")
    told = any(step.prompt is not None and step.completion is not None for d in pilot.debates for step in d.steps)
    if settings.limit_tpm is not None and not told:
        raise ConfigError(
            f"--limit-tpm: no server in {pilot.name} said what its calls used, so tokens cannot be planned"
        )
    cores = _cores_at_hand(settings)
    cpu_ms = settings.cpu_ms_per_call or ENGINE[placement, pilot.log_probabilities].cpu_ms
    return Scenario(
        rpm=settings.limit_rpm,
        tpm=settings.limit_tpm,
        concurrency=settings.concurrency,
        max_open=settings.max_open or pilot.max_open or _MAX_OPEN,
        cores=None if cores is None else BUSY_SHARE * cores,
        cpu_s=cpu_ms / 1000.0,
    )


def _cores_at_hand(settings: PlanSettings) -> int | None:
    """Of all nodes; None where none were named."""
    return None if settings.nodes is None else settings.nodes * (settings.cores_per_node or os.cpu_count() or 1)


def _relaxed(
    programme: Programme,
    chosen: Chosen,
    scenario: Scenario,
    cases: int,
    bound: Constraint,
    random: np.random.Generator,
) -> tuple[float | None, Constraint | None]:
    """The time without the bound that binds, and what binds then."""
    if bound == "latency":
        return None, None
    without = scenario.without(bound, cases)
    seen = forecast(programme, chosen, without, cases, _CALLS_RELAXED, random, draws=_DRAWS)
    return seen.time_s, binding(alone_s(programme, chosen, without, cases))
