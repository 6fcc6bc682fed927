"""What a run's budgets let be open at once, from its protocol's plan of calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from moot.actors.limits.affordable import Affordable, DebateBound
from moot.deploy.running.plan_calls import CHARACTERS_PER_TOKEN, longest_reply, prompt_tokens
from moot.deploy.running.prepare import Prepared, inner
from moot.protocols.calls import CallPlan
from moot.protocols.case import Case

_LOOKED_AT = 20
"""Cases whose plans are looked at: a bound of what a debate uses counts as one debate among those that have ended."""


def affordable(prepared: Prepared, spent: Mapping[str, float]) -> Affordable | None:
    """How many debates the budgets cover; None for a run without one.

    Args:
        prepared: the run.
        spent: by budget, what its earlier sessions have used.
    """
    config = prepared.config
    caps = {"usd": config.max_cost_usd, "tokens": config.max_tokens}
    left = {name: max(0.0, cap - spent.get(name, 0.0)) for name, cap in caps.items() if cap is not None}
    if not left:
        return None
    cases = (each.case for each in islice(prepared.cases(), _LOOKED_AT)) if prepared.checked is not None else ()
    return Affordable(left, _bounds(prepared, cases), prepared.prices)


def _each_larger(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The larger prompt and the larger reply of two, which need not be of the same."""
    return max(one[0], other[0]), max(one[1], other[1])


def _bounds(prepared: Prepared, cases: Iterable[Case]) -> dict[str, DebateBound]:
    """By budget, at most what a debate and each of its calls use; empty where the protocol does not say."""
    calls_of: Callable[[Case, int], CallPlan] | None = getattr(inner(prepared.protocol), "calls", None)
    if calls_of is None or not prepared.members:
        return {}
    longest, judges = longest_reply(prepared.members), len(prepared.bindings.get("judge", ()))
    debate = call = (0, 0)
    for case in cases:
        planned = calls_of(case, judges)
        most, prompt = planned.most, prompt_tokens(prepared.templates, planned)
        read = math.ceil(most.replies_read / max(1, most.count)) * longest
        debate = _each_larger(debate, (most.count * prompt + most.replies_read * longest, most.count * longest))
        # A call is reserved for at a token for every byte of its prompt.
        call = _each_larger(call, (CHARACTERS_PER_TOKEN * (prompt + read), longest))
    if not sum(debate):
        return {}
    prices = [price for member in prepared.members if (price := prepared.prices.get(member.model)) is not None]
    return {
        "tokens": DebateBound(float(sum(debate)), float(sum(call))),
        "usd": DebateBound(
            *(max((price.bound_usd(*tokens) for price in prices), default=0.0) for tokens in (debate, call))
        ),
    }
