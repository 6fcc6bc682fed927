"""Stop reason of a run as text, with an estimate of the remaining work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from moot.actors.limits.limiter_client import GIVE_UP_S, EndpointDown, LimiterGone
from moot.actors.models.prices import Price
from moot.deploy.runs.record_state import RecordState
from moot.deploy.runs.run_config import RunConfig

SAYS = ": "
"""Separates an exhausted bound from what the next call needed."""


@dataclass(frozen=True)
class RemainingWork:
    """Remaining work of a stopped run.

    Attributes:
        cases: number of remaining cases.
        finished: number of cases behind the estimate: those with a verdict that did not fail.
        uses: by budget, `tokens` or `usd`, what should be enough for the remaining cases: for each the mean of the
            finished ones, and together three standard deviations more, at most the largest for each. What those in
            progress have paid already is not taken off, for the first to finish are the short ones. Empty when none
            has finished, or usage is unknown.
    """

    cases: int
    finished: int
    uses: Mapping[str, float]


def remaining_work(state: RecordState, left: int, prices: Mapping[str, Price]) -> RemainingWork:
    """Estimate the use of the remaining cases from the record.

    Raises:
        RecordError: the record cannot be read.
    """
    finished = {case_id for (case_id, _), failed in state.verdicts.items() if not failed}
    if not finished:
        return RemainingWork(left, 0, {})
    used: dict[str, dict[str, float]] = {"tokens": dict.fromkeys(finished, 0.0), "usd": dict.fromkeys(finished, 0.0)}
    for row in state.turns.filter(state.turns["reused_from"].is_null()).to_pylist():
        if row["case_id"] not in finished:
            continue
        prompt, completion = row["prompt_tokens"], row["completion_tokens"]
        if prompt is None or completion is None:
            return RemainingWork(left, len(finished), {})
        used["tokens"][row["case_id"]] += prompt + completion
        if (price := prices.get(row["model"])) is not None:
            used["usd"][row["case_id"]] += price.bound_usd(prompt, completion)
    uses = {name: _enough(list(by_case.values()), left) for name, by_case in used.items()}
    return RemainingWork(left, len(finished), uses)


def _enough(used: Sequence[float], left: int) -> float:
    """Estimated maximum use of `left` more cases, from the use of finished ones."""
    spread = stdev(used) * math.sqrt(left + left**2 / len(used)) if len(used) > 1 else 0.0
    return min(left * fmean(used) + 3.0 * spread, left * max(used))


def describe_stop(why: str, config: RunConfig, rest: RemainingWork | None = None) -> str:
    """The stop reason as text for the user.

    Args:
        why: the dispatcher's stop reason: a kind, a colon, and the detail.
        config: the configuration with the bounds.
        rest: the remaining work; None when the number of remaining cases is unknown.
    """
    kind, _, what = why.partition(": ")
    if kind == EndpointDown.kind:
        return f"{what} has not answered for {GIVE_UP_S:.0f} s"
    if kind == LimiterGone.kind:
        return f"the rate limiter is unreachable ({what})"
    budget, *amounts = what.split()
    needed, left = map(float, amounts)
    if budget == "usd":
        bound, need = f"--max-cost {config.max_cost_usd:g}", f"may cost {_usd(needed)}, {_usd(left)} is left"
    else:
        bound, need = f"--max-tokens {config.max_tokens}", f"may take {needed:,.0f} tokens, {left:,.0f} are left"
    return f"{bound} does not allow another call{SAYS}the next {need}; {_suggest_bound(budget, needed, left, rest)}"


def _suggest_bound(budget: str, needed: float, left: float, rest: RemainingWork | None) -> str:
    """Suggested increase of a bound: the remaining use plus the reservation of one call."""
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
