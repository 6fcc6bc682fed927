"""Report of a plan: on a terminal or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from rich.console import Console

from moot.deploy.results.report.blocks import Block, Items, Note, Pairs
from moot.deploy.results.report.render import show_report
from moot.deploy.studies.planning.caveats import debates_words
from moot.deploy.studies.planning.plan import LEVEL, PlanEstimate, PlanTotals, RunPlan
from moot.deploy.studies.planning.settings import WORDS
from moot.protocols.errors import ConfigError

_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86_400.0


class PlanView(BaseModel):
    """JSON form of a plan; every interval is [low, high]."""

    pilot: dict[str, Any]
    bounds: dict[str, Any]
    time_s: dict[str, Any]
    totals: dict[str, Any]
    in_flight: dict[str, Any]
    open_debates: dict[str, Any]
    needs: dict[str, Any]
    binding: dict[str, Any]
    level: float
    seed: int
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]


def check_output_form(form: str) -> None:
    """Validate the output format before anything is read. Raises ConfigError."""
    if form not in ("text", "json"):
        raise ConfigError(f"--format: expected text or json, not {form!r}")


def show_plan(plan: RunPlan, form: str = "text", console: Console | None = None) -> None:
    """Print a plan.

    Args:
        plan: the plan.
        form: `text` or `json`.
        console: output; None for the standard output.

    Raises:
        ConfigError: for an unknown format.
    """
    check_output_form(form)
    show_report(_json(plan), lambda: _blocks(plan), form, console)


def _blocks(plan: RunPlan) -> list[Block]:
    warnings = [Note(f"warning: {warning}", "warning") for warning in plan.warnings]
    return [*warnings, Pairs(list(_rows(plan))), Items(plan.remarks)]


def _rows(plan: RunPlan) -> Iterator[tuple[str, str]]:
    pilot, used = plan.pilot, plan.totals
    yield "pilot", f"{pilot.name}: {pilot.protocol} on {pilot.task}, {debates_words(pilot.debates)}"
    yield "models", ", ".join(pilot.models) or "none"
    cases = plan.settings.cases
    yield "planned", f"{cases:,} {'case' if cases == 1 else 'cases'}; {_bounds(plan)}"
    yield "time", _with_interval(plan.time_s, format_duration)
    yield "bottleneck", _binding(plan)
    yield (
        "each bound alone",
        ", ".join(
            f"{WORDS[name]} {format_duration(seconds)}"
            for name, seconds in sorted(plan.alone_s.items(), key=lambda x: -x[1])
        ),
    )
    yield "calls", f"{_with_interval(used.calls, format_count)}, {used.calls.value / plan.settings.cases:.3g} a case"
    at_least = "at least " if used.calls_without_usage else ""
    yield "prompt tokens", at_least + _with_interval(used.prompt_tokens, format_count)
    yield "completion tokens", at_least + _with_interval(used.completion_tokens, format_count)
    yield "cost", _cost(used)
    yield "failed cases", _with_interval(used.failed, format_count)
    yield "skipped cases", _with_interval(used.skipped, lambda share: f"{share:.1%}")
    yield "calls in flight", f"{_with_interval(plan.in_flight, format_mean_count)} on average"
    yield "debates open", f"{_with_interval(plan.open_debates, format_mean_count)} on average"
    yield "needs", _needs(plan)
    yield "intervals", f"{LEVEL:.0%} prediction intervals; seed {plan.settings.seed}"


def _bounds(plan: RunPlan) -> str:
    scenario = plan.scenario
    bounds = [f"at most {scenario.max_open:,} open"]
    if scenario.rpm is not None:
        bounds.append(f"{scenario.rpm:,} requests/min")
    if scenario.tpm is not None:
        bounds.append(f"{scenario.tpm:,} tokens/min")
    bounds.append(
        "concurrent calls adapt"
        if plan.settings.concurrency is None
        else f"{plan.settings.concurrency:,} concurrent calls"
    )
    cores = plan.cores_at_hand
    bounds.append("as many cores as needed" if cores is None else f"{cores:,} {'core' if cores == 1 else 'cores'}")
    return ", ".join(bounds)


def _cores(n: int, interval: str = "") -> str:
    return f"{n:,}{interval} {'core' if n == 1 else 'cores'}"


def _binding(plan: RunPlan) -> str:
    if plan.relaxed_s is None or plan.then_binding is None:
        return f"{WORDS[plan.binding]}: only faster replies or shorter debates would help"
    then = WORDS[plan.then_binding]
    return f"{WORDS[plan.binding]}; without that bound {format_duration(plan.relaxed_s)}, then {then}"


def _cost(used: PlanTotals) -> str:
    cost = used.cost_usd
    if cost is None:
        return "unknown"
    return ("" if _is_all_known(used) else "at least ") + _with_interval(cost, format_usd)


def _is_all_known(used: PlanTotals) -> bool:
    return not (used.calls_without_price or used.calls_without_usage)


def _needs(plan: RunPlan) -> str:
    need, low, high = plan.needs, plan.needs_low, plan.needs_high
    cores = _cores(need.cores, f" [{low.cores:,} to {high.cores:,}]")
    moderators = f"{need.moderators:,} [{low.moderators:,} to {high.moderators:,}]"
    memory = " to ".join(f"{each.memory_mb / 1024:.1f}" for each in (low, high))
    return (
        f"{cores}, {moderators} {'moderator' if need.moderators == 1 else 'moderators'} ({plan.placement}), "
        f"{need.memory_mb / 1024:.1f} [{memory}] GiB of memory"
    )


def _with_interval(estimate: PlanEstimate, words: Any) -> str:
    return f"{words(estimate.value)} [{words(estimate.low)} to {words(estimate.high)}]"


def format_duration(seconds: float) -> str:
    """Format a duration.

    >>> format_duration(0.5), format_duration(95), format_duration(8000), format_duration(200000)
    ('0.5 s', '1.58 min', '2.22 h', '2.31 days')
    """
    if seconds < _MINUTE_S:
        return f"{seconds:.3g} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:,.3g} min"
    if seconds < 2 * _DAY_S:
        return f"{seconds / _HOUR_S:,.3g} h"
    return f"{seconds / _DAY_S:,.3g} days"


def format_count(amount: float) -> str:
    """Format a count."""
    return f"{round(amount):,}"


def format_mean_count(amount: float) -> str:
    """Format a mean count; a small one is not rounded to zero.

    >>> format_mean_count(0.04), format_mean_count(3.14), format_mean_count(1234.5), format_mean_count(0.0)
    ('0.04', '3.1', '1,234', '0')
    """
    return format_count(amount) if amount >= 10 or not amount else f"{amount:.2g}"


def format_usd(amount: float) -> str:
    """Format an amount in USD: whole from 1,000, with cents from 0.1, else with two significant digits."""
    return (
        f"${amount:,.0f}" if amount >= 1000 else f"${amount:,.2f}" if amount >= 0.1 or not amount else f"${amount:.2g}"
    )


def _estimate(estimate: PlanEstimate | None) -> dict[str, Any] | None:
    return None if estimate is None else {"value": estimate.value, "interval": [estimate.low, estimate.high]}


def _json(plan: RunPlan) -> PlanView:
    pilot, scenario, settings, used = plan.pilot, plan.scenario, plan.settings, plan.totals
    totals = ("calls", "requests", "prompt_tokens", "completion_tokens", "cost_usd")
    return PlanView(
        pilot={
            "path": pilot.name,
            "protocol": pilot.protocol,
            "task": pilot.task,
            "models": pilot.models,
            "debates": pilot.debates,
        },
        bounds={
            "cases": settings.cases,
            "requests_per_min": scenario.rpm,
            "tokens_per_min": scenario.tpm,
            "concurrency": settings.concurrency,
            "max_open": scenario.max_open,
            "cores": plan.cores_at_hand,
            "placement": plan.placement,
            "cpu_ms_per_call": 1000.0 * scenario.cpu_s,
        },
        time_s=_estimate(plan.time_s) or {},
        totals={
            **{name: _estimate(getattr(used, name)) for name in totals},
            "tokens_are_lower_bound": bool(used.calls_without_usage),
            "unconfirmed_tokens_max": used.unconfirmed_tokens,
            "cost_is_lower_bound": used.cost_usd is not None
            and bool(used.calls_without_price or used.calls_without_usage),
            "failed_cases": _estimate(used.failed),
            "skipped_share": _estimate(used.skipped),
        },
        in_flight={"mean": _estimate(plan.in_flight)},
        open_debates={"mean": _estimate(plan.open_debates)},
        needs={
            name: {"value": value, "interval": [getattr(plan.needs_low, name), getattr(plan.needs_high, name)]}
            for name, value in plan.needs._asdict().items()
        },
        binding={
            "constraint": plan.binding,
            "alone_s": dict(plan.alone_s),
            "relaxed_time_s": plan.relaxed_s,
            "then": plan.then_binding,
        },
        level=LEVEL,
        seed=settings.seed,
        remarks=plan.remarks,
        warnings=plan.warnings,
    )
