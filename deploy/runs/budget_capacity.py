"""Number of concurrent debates that a run's budgets allow, from a dry run of its protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from moot.actors.agent.request_fingerprint import sent_decoding
from moot.actors.limits.budget_forecast import BudgetForecast, DebateCostBound
from moot.deploy.runs.dry_run import estimate_calls
from moot.deploy.runs.dry_run_stubs import CHARACTERS_PER_TOKEN
from moot.deploy.runs.prepare import Prepared
from moot.protocols.case import Case

_SAMPLE_SIZE = 20
"""Number of sampled cases. Their estimate has the weight of one debate among those that have ended."""


def affordable_debates(prepared: Prepared, spent: Mapping[str, float]) -> BudgetForecast | None:
    """Forecast of the number of debates that the budgets cover; None without a budget.

    Args:
        prepared: the run.
        spent: use of its earlier sessions by budget.
    """
    config = prepared.config
    caps = {"usd": config.max_cost_usd, "tokens": config.max_tokens}
    left = {name: max(0.0, cap - spent.get(name, 0.0)) for name, cap in caps.items() if cap is not None}
    if not left:
        return None
    cases = (each.case for each in islice(prepared.cases(), _SAMPLE_SIZE)) if prepared.checked is not None else ()
    return BudgetForecast(left, _bounds(prepared, cases), prepared.prices)


def _elementwise_max(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Elementwise maximum of prompt and reply tokens."""
    return max(one[0], other[0]), max(one[1], other[1])


def _bounds(prepared: Prepared, cases: Iterable[Case]) -> dict[str, DebateCostBound]:
    """Estimated maximum use of a debate and of one call, by budget; empty if no case can be sampled."""
    if not prepared.members:
        return {}
    longest = max(sent_decoding(member).max_tokens for member in prepared.members)
    debate = call = (0, 0)
    for few, most in estimate_calls(prepared, cases):
        debate = _elementwise_max(debate, (most.prompt_tokens, most.completion_tokens))
        # A call reserves one token for every byte of its prompt.
        call = _elementwise_max(call, (CHARACTERS_PER_TOKEN * max(few.longest_prompt, most.longest_prompt), longest))
    if not sum(debate):
        return {}
    prices = [price for member in prepared.members if (price := prepared.prices.get(member.model)) is not None]
    return {
        "tokens": DebateCostBound(float(sum(debate)), float(sum(call))),
        "usd": DebateCostBound(
            *(max((price.bound_usd(*tokens) for price in prices), default=0.0) for tokens in (debate, call))
        ),
    }
