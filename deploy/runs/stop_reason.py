"""Stop reason of a run as text, with an estimate of the remaining work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from moot.actors.agent.roles import Roles
from moot.actors.debate.first_asks import NothingUsable
from moot.actors.limits.limiter_client import GIVE_UP_S, EndpointDown, LimiterGone
from moot.actors.models.prices import Price
from moot.actors.models.usage_totals import UsageTotals, budget_use, total_of
from moot.deploy.results.run_info import doctor_command
from moot.deploy.runs.prepare import Bindings
from moot.deploy.runs.record_state import RecordState
from moot.deploy.runs.run_config import RunConfig

DETAIL_SEPARATOR = ": "
"""Separates an exhausted bound from the need of the next call."""


@dataclass(frozen=True)
class RemainingWork:
    """Remaining work of a stopped run.

    Attributes:
        cases: number of remaining cases.
        finished: number of cases that the estimate is based on: those with a verdict that did not fail.
        uses: estimated maximum use of the remaining cases by budget (`tokens` or `usd`): their number times the mean of
            the finished cases, plus three standard deviations of a predicted sum, and at most their number times the
            largest. What cases in progress have already used is not subtracted, because the first cases to finish are
            the short ones. Empty if none has finished, or usage is unknown.
    """

    cases: int
    finished: int
    uses: Mapping[str, float]


def remaining_work(state: RecordState, left: int, prices: Mapping[str, Price]) -> RemainingWork:
    """Remaining work, with the use of the remaining cases estimated from the record.

    Args:
        state: the record's current state.
        left: number of remaining cases.
        prices: by model.

    Raises:
        RecordError: the record cannot be read.
    """
    finished = {case_id for (case_id, _), failed in state.verdicts.items() if not failed}
    if not finished:
        return RemainingWork(left, 0, {})
    usage: dict[str, dict[str, UsageTotals]] = {case_id: {} for case_id in finished}
    for row in state.turns.filter(state.turns["reused_from"].is_null()).to_pylist():
        if (of_case := usage.get(row["case_id"])) is not None:
            of_case.setdefault(row["model"], UsageTotals()).add(row["prompt_tokens"], row["completion_tokens"])
    if any(total_of(of_case).calls_without_usage for of_case in usage.values()):
        return RemainingWork(left, len(finished), {})
    used = [budget_use(of_case, prices) for of_case in usage.values()]
    return RemainingWork(left, len(finished), {name: _enough([each[name] for each in used], left) for name in used[0]})


def _enough(used: Sequence[float], left: int) -> float:
    """Upper prediction bound (three standard deviations) of the use of `left` cases, from the use of finished ones."""
    spread = stdev(used) * math.sqrt(left + left**2 / len(used)) if len(used) > 1 else 0.0
    return min(left * fmean(used) + 3.0 * spread, left * max(used))


def describe_stop(why: str, config: RunConfig, bindings: Bindings, rest: RemainingWork | None = None) -> str:
    """Stop reason as text for the user.

    Args:
        why: the dispatcher's stop reason: a kind, a colon, and the detail.
        config: the configuration with the bounds.
        bindings: the models by role family.
        rest: the remaining work; None when the number of remaining cases is unknown.
    """
    kind, _, what = why.partition(": ")
    if kind == EndpointDown.kind:
        return f"{what} has not answered for {GIVE_UP_S:.0f} s"
    if kind == LimiterGone.kind:
        return f"the rate limiter is unreachable ({what})"
    if kind == NothingUsable.kind:
        return _describe_unusable(what, config, bindings)
    budget, *amounts = what.split()
    needed, left = map(float, amounts)
    if budget == "usd":
        bound, need = f"--max-cost {config.max_cost_usd:g}", f"may cost {_usd(needed)}, {_usd(left)} is left"
    else:
        bound, need = f"--max-tokens {config.max_tokens}", f"may take {needed:,.0f} tokens, {left:,.0f} are left"
    suggestion = _suggest_bound(budget, needed, left, rest)
    return f"{bound} does not allow another call{DETAIL_SEPARATOR}the next {need}; {suggestion}"


def _describe_unusable(what: str, config: RunConfig, bindings: Bindings) -> str:
    """That the first asks of a role were in vain, with the command that examines its model."""
    role, _, reason = what.partition(DETAIL_SEPARATOR)
    command = doctor_command(Roles(bindings).binding(role).model_dump(), config.model_dump())
    return (
        f"{reason}; `{command}` examines the model. Then run the same command again, with --retry-failed for the "
        "failed cases; --max-unusable 0 goes on in any case"
    )


def _suggest_bound(budget: str, needed: float, left: float, rest: RemainingWork | None) -> str:
    """Suggested increase of a bound, as text: for the remaining cases, and for one call.

    Args:
        budget: `tokens` or `usd`.
        needed: use that the next call reserves.
        left: rest of the budget.
        rest: the remaining work; None if unknown.
    """
    amount = _usd if budget == "usd" else _tokens
    one = f"{amount(needed - left)} or more for one call"
    if rest is None:
        return f"raise it by {one}"
    cases = f"the {rest.cases:,} {'case' if rest.cases == 1 else 'cases'} left of the run"
    if budget not in rest.uses:
        why = "the use of finished ones is not fully known" if rest.finished else "none has finished"
        return f"raise it by {one}; what {cases} will take is unknown, as {why}"
    more = needed + rest.uses[budget] - left
    return f"raise it by about {amount(more)} for {cases} (a safe estimate, from {rest.finished:,} finished), by {one}"


def _usd(amount: float) -> str:
    return f"${math.ceil(amount * 1e6) / 1e6:.6f}"


def _tokens(amount: float) -> str:
    return f"{math.ceil(amount):,}"
