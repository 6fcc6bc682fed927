"""Caveats of a plan: its assumptions, and what the pilot does not show."""

from __future__ import annotations

import os
from collections.abc import Iterator

from moot.actors.debate.run_spec import Placement
from moot.deploy.studies.planning.costs import MEASURED_ON
from moot.deploy.studies.planning.pilot import FEW, Pilot
from moot.deploy.studies.planning.settings import PlanSettings

MANY_FAILED = 0.2
"""Share of failed debates above which the pilot itself, rather than single cases, is suspect."""


def caveats(
    pilot: Pilot,
    settings: PlanSettings,
    placement: Placement,
    *,
    without_usage: float,
    without_price: float,
    has_cost: bool,
) -> Iterator[str]:
    """The caveats, most important first.

    Args:
        pilot: the pilot.
        settings: the plan's settings.
        placement: the planned placement.
        without_usage, without_price: share of the calls without known usage, and without a known price.
        has_cost: whether a cost is known.
    """
    yield from _models_caveat(pilot, settings)
    if pilot.debates < FEW:
        yield (
            f"only {debates_words(pilot.debates)} in the pilot: the intervals are too narrow for what it has not seen; "
            f"take {FEW} or more"
        )
    yield from _left_out(pilot)
    yield from _unknown(pilot, settings.cases, without_usage, without_price, has_cost)
    yield from _assumed(pilot, settings, placement)


def beyond_pilot_caveat(pilot: Pilot, under_way: float) -> Iterator[str]:
    """Warning of a plan with more calls in flight than the pilot's servers are shown to handle.

    Args:
        pilot: the pilot; one whose models answer in the run's own processes shows no server at all.
        under_way: mean calls in flight of the plan.
    """
    shown = pilot.under_way
    if not pilot.in_process and shown and round(under_way) > shown:
        yield (
            f"this plan has {under_way:,.0f} calls in flight on average, and the pilot showed {shown:,} to be served "
            "at most: a server that is full answers later, so that the run may take many times as long; plan with "
            f"--concurrency {max(1, shown // max(1, len(pilot.models)))}, or from a pilot with as many in flight"
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
            f"{failed:,} of the pilot's {debates:,} debates failed, and the plan assumes the same share; see "
            "`moot show` for the reasons and run another pilot, because a failed debate does not use what others use"
        )


def _models_caveat(pilot: Pilot, settings: PlanSettings) -> Iterator[str]:
    if pilot.simulated:
        free = ", and its price is 0" if None not in pilot.prices else ""
        yield f"a simulated model: its latencies, tokens and failures are not a real model's{free}"
    if any(model.startswith("replay/") for model in pilot.models):
        yield "the pilot's replies were replayed from a record: their latencies are not a server's"
    if pilot.in_process and pilot.models and (settings.limit_rpm or settings.limit_tpm or settings.concurrency):
        yield "the pilot's models answer in the run's own processes, which no limit holds back; a server is planned for"


def _left_out(pilot: Pilot) -> Iterator[str]:
    if pilot.sampled_from > pilot.debates:
        yield f"{pilot.debates:,} of the pilot's {pilot.sampled_from:,} debates were drawn and gone by"
    if pilot.with_reused:
        yield f"left out: {pilot.with_reused:,} debates with replies of another run; all calls are planned as paid"
    if pilot.unfinished:
        yield f"left out: {pilot.unfinished:,} debates without a verdict, which may be the long ones"
    if pilot.later_attempts:
        yield f"left out: {pilot.later_attempts:,} second attempts at failed cases"
    if pilot.interrupted:
        yield f"{pilot.interrupted:,} gaps in debates that were interrupted, or waited for a person, count as none"
    if pilot.shared:
        yield f"{pilot.shared:,} replies that cases share are planned in proportion; more cases may share them"
    if pilot.waits_unknown:
        yield "the record lacks the time that calls waited for admission: it counts as latency; a newer pilot has it"


def _unknown(pilot: Pilot, cases: int, without_usage: float, without_price: float, has_cost: bool) -> Iterator[str]:
    if without_usage:
        yield f"tokens are a lower bound: {without_usage:.1%} of the calls have no known usage"
    if not has_cost:
        yield "the cost is unknown: no price, or no tokens, are known; --prices FILE gives prices"
    elif share := max(without_usage, without_price):
        yield f"the cost is a lower bound: price or tokens of {share:.1%} of the calls or more are unknown"
    if unconfirmed := float(pilot.unconfirmed_tokens.mean()) * cases:
        yield f"up to {unconfirmed:,.0f} tokens more may be billed for attempts that came to nothing"


def _assumed(pilot: Pilot, settings: PlanSettings, placement: Placement) -> Iterator[str]:
    yield "assumed: servers answer as fast as in the pilot, however many calls are under way, and the cases are alike"
    if settings.concurrency is None and not pilot.in_process:
        yield "assumed: the server takes what the limits allow without a 429, so that the calls under way can adapt"
    if settings.cpu_ms_per_call is None:
        engine = "; the pilot ran inline" if pilot.engine == "inline" else ""
        yield f"assumed: processor time of a call in placement {placement} as on {MEASURED_ON}{engine}"
    if settings.nodes is not None and settings.cores_per_node is None:
        yield f"assumed: {os.cpu_count()} cores per node, as here"
