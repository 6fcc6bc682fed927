"""What has stopped a run by itself, in words."""

from __future__ import annotations

from moot.actors.limits.gate import GIVE_UP_S, EndpointDown, LimiterGone
from moot.deploy.running.config import RunConfig


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
    if what == "usd" and config.max_cost_usd is not None:
        return f"--max-cost {config.max_cost_usd:g} does not allow another call"
    return f"--max-tokens {config.max_tokens} does not allow another call"
