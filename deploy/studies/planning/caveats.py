"""Caveats of a plan: its assumptions, and what the pilot does not show."""

from __future__ import annotations

import os
from collections.abc import Iterator

from moot.actors.debate.run_spec import Placement
from moot.deploy.studies.planning.costs import MEASURED_ON
from moot.deploy.studies.planning.pilot import FEW, Pilot
from moot.deploy.studies.planning.settings import PlanSettings

MANY_FAILED = 0.2
"""Proportion of failed debates from which the plan has a warning."""


def caveats(
    pilot: Pilot,
    settings: PlanSettings,
    placement: Placement,
    *,
    without_usage: float,
    without_price: float,
    has_cost: bool,
) -> Iterator[str]:
    """Caveats of a plan, most important first.

    Args:
        pilot: the pilot.
        settings: settings of the plan.
        placement: planned placement.
        without_usage, without_price: proportion of calls without known usage, and without a known price.
        has_cost: whether the cost is known.
    """
    yield from _models_caveat(pilot, settings)
    if pilot.debates < FEW:
        yield (
            f"only {debates_words(pilot.debates)} in the pilot: the intervals are too narrow, because rare long "
            f"debates may be missing; use {FEW} or more"
        )
    yield from _left_out(pilot)
    yield from _unknown(pilot, settings.cases, without_usage, without_price, has_cost)
    yield from _assumed(pilot, settings, placement)


def beyond_pilot_caveat(pilot: Pilot, under_way: float) -> Iterator[str]:
    """Warning of a plan with more calls in flight than the pilot had.

    Args:
        pilot: the pilot. If its models run in the run's own processes, it says nothing about servers, and there is no
            warning.
        under_way: mean number of calls in flight of the plan.
    """
    observed = pilot.under_way
    if not pilot.in_process and observed and round(under_way) > observed:
        yield (
            f"this plan has {under_way:,.0f} calls in flight on average, but the pilot had at most {observed:,}: an "
            "overloaded server answers more slowly, so that the run may take many times as long; plan with "
            f"--concurrency {max(1, observed // max(1, len(pilot.models)))}, or from a pilot with as many in flight"
        )


def debates_words(n: int) -> str:
    """A number of debates as text.

    >>> debates_words(1), debates_words(2000)
    ('1 debate', '2,000 debates')
    """
    return f"{n:,} {'debate' if n == 1 else 'debates'}"


def failures_caveat(pilot: Pilot) -> Iterator[str]:
    """Warning of a pilot with many failed debates."""
    failed, debates = int(pilot.failed.sum()), pilot.debates
    if failed >= MANY_FAILED * debates:
        yield (
            f"{failed:,} of the pilot's {debates:,} debates failed, and the plan assumes the same proportion; see "
            "the reasons with `moot show` and run another pilot, because a failed debate uses less than others"
        )


def _models_caveat(pilot: Pilot, settings: PlanSettings) -> Iterator[str]:
    if pilot.simulated:
        free = ", and its price is 0" if None not in pilot.prices else ""
        yield f"a simulated model: its latencies, tokens and failures are not a real model's{free}"
    if any(model.startswith("replay/") for model in pilot.models):
        yield "the pilot's replies were replayed from a record: their latencies are not those of a server"
    if pilot.in_process and pilot.models and (settings.limit_rpm or settings.limit_tpm or settings.concurrency):
        yield "the pilot's models run in the run's own processes, to which no limit applies; the plan assumes a server"


def _left_out(pilot: Pilot) -> Iterator[str]:
    if pilot.sampled_from > pilot.debates:
        yield f"{pilot.debates:,} of the pilot's {pilot.sampled_from:,} debates were sampled"
    if pilot.with_reused:
        yield f"left out: {pilot.with_reused:,} debates with replies of another run; the plan pays for all calls"
    if pilot.unfinished:
        yield f"left out: {pilot.unfinished:,} debates without a verdict, which may be the long ones"
    if pilot.later_attempts:
        yield f"left out: {pilot.later_attempts:,} second attempts at failed cases"
    if pilot.interrupted:
        yield f"{pilot.interrupted:,} gaps in debates that were interrupted, or waited for a person, are not counted"
    if pilot.shared:
        yield f"{pilot.shared:,} shared replies are divided among the cases; in a larger run more cases may share them"
    if pilot.waits_unknown:
        yield "rate-limit waits, which this older record lacks, count as latency; a new pilot records them"


def _unknown(pilot: Pilot, cases: int, without_usage: float, without_price: float, has_cost: bool) -> Iterator[str]:
    if without_usage:
        yield f"tokens are a lower bound: {without_usage:.1%} of the calls have no known usage"
    if not has_cost:
        yield "the cost is unknown: no price, or no tokens, are known; --prices FILE gives prices"
    elif share := max(without_usage, without_price):
        yield f"the cost is a lower bound: price or tokens of {share:.1%} of the calls or more are unknown"
    if unconfirmed := float(pilot.unconfirmed_tokens.mean()) * cases:
        yield f"up to {unconfirmed:,.0f} tokens more may be billed for failed attempts"


def _assumed(pilot: Pilot, settings: PlanSettings, placement: Placement) -> Iterator[str]:
    yield "assumed: servers answer as fast as in the pilot at any concurrency, and the cases are similar"
    if settings.concurrency is None and not pilot.in_process:
        yield "assumed: the server accepts what the limits allow without a 429, so that concurrency can adapt"
    if settings.cpu_ms_per_call is None:
        engine = "; the pilot ran inline" if pilot.engine == "inline" else ""
        yield f"assumed: CPU time of a call in placement {placement} as on {MEASURED_ON}{engine}"
    if settings.nodes is not None and settings.cores_per_node is None:
        yield f"assumed: {os.cpu_count()} cores per node, as on this machine"
