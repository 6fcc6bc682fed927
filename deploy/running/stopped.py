"""What has stopped a run by itself, in words."""

from __future__ import annotations

import math

from moot.actors.limits.gate import GIVE_UP_S, EndpointDown, LimiterGone
from moot.deploy.running.config import RunConfig

SAYS = ": "
"""Between a bound that allows no more and what the next call wanted of it."""


def in_words(why: str, config: RunConfig) -> str:
    """What a user is told.

    Args:
        why: as the arena and the reception have it: a kind, a colon, and what it was.
        config: with the bounds that were met.
    """
    kind, _, what = why.partition(": ")
    if kind == EndpointDown.kind:
        return f"{what} has not answered for {GIVE_UP_S:.0f} s"
    if kind == LimiterGone.kind:
        return f"the run's limiter cannot be asked any more ({what})"
    budget, needed, left = what.split()
    if budget == "usd":
        return f"--max-cost {config.max_cost_usd:g} does not allow another call{SAYS}{_usd(float(needed), float(left))}"
    return f"--max-tokens {config.max_tokens} does not allow another call{SAYS}{_tokens(float(needed), float(left))}"


def _usd(needed: float, left: float) -> str:
    more = math.ceil((needed - left) * 1e6) / 1e6
    return f"the next may cost ${needed:.6f}, ${left:.6f} is left; raise it by ${more:.6f} or more"


def _tokens(needed: float, left: float) -> str:
    return f"the next may take {needed:,.0f} tokens, {left:,.0f} are left; raise it by {needed - left:,.0f} or more"
