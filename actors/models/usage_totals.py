"""Usage totals: the sum of what calls used, the only place of the engine that adds up tokens, calls and money."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from moot.actors.models.prices import Price


class UsageTotals(msgspec.Struct, omit_defaults=True):
    """Sum of the usage of calls.

    Attributes:
        prompt_tokens, completion_tokens: known tokens; lower bounds if `calls_without_usage` is not 0.
        calls: number of calls.
        calls_without_usage: calls whose usage is unknown in part.
        unconfirmed_attempts: attempts that a server may have billed without reporting usage.
        unconfirmed_tokens_max: upper bound of the tokens in them; the lower bound is 0.

    >>> calls = UsageTotals()
    >>> calls.add(10, 5)
    >>> calls.add(7, None)
    >>> calls.tokens, calls.calls, calls.calls_without_usage
    (22, 2, 1)
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    calls_without_usage: int = 0
    unconfirmed_attempts: int = 0
    unconfirmed_tokens_max: int = 0

    def add(self, prompt: int | None, completion: int | None, *, complete: bool = True) -> None:
        """Add one call; `complete` is False when it may have used more than it reports."""
        self.prompt_tokens += prompt or 0
        self.completion_tokens += completion or 0
        self.calls += 1
        self.calls_without_usage += not complete or prompt is None or completion is None

    def add_unconfirmed(self, tokens_max: int) -> None:
        """Add one attempt that may have been billed, with the upper bound of its tokens."""
        self.unconfirmed_attempts += 1
        self.unconfirmed_tokens_max += tokens_max

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(*(getattr(self, name) + getattr(other, name) for name in UsageTotals.__struct_fields__))

    @property
    def tokens(self) -> int:
        """Known tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens


def add_usage(usage: dict[str, UsageTotals], more: Mapping[str, UsageTotals]) -> None:
    """Add usage by model."""
    for model, used in more.items():
        usage[model] = usage.get(model, UsageTotals()) + used


def total_of(usage: Mapping[str, UsageTotals]) -> UsageTotals:
    """Sum over all models."""
    return sum(usage.values(), UsageTotals())


def cost_usd(usage: Mapping[str, UsageTotals], prices: Mapping[str, Price]) -> float | None:
    """Cost in USD of the known tokens; None when the price of a model is unknown.

    Args:
        usage: by model.
        prices: by model.
    """
    if not usage.keys() <= prices.keys():
        return None
    return sum(prices[model].bound_usd(used.prompt_tokens, used.completion_tokens) for model, used in usage.items())


def budget_use(usage: Mapping[str, UsageTotals], prices: Mapping[str, Price]) -> dict[str, float]:
    """Use of the budgets `tokens` and `usd`, at most: of known tokens and of unconfirmed attempts.

    Args:
        usage: by model.
        prices: by model; a model without one uses no money.
    """
    total = total_of(usage)
    usd = (
        price.bound_usd(used.prompt_tokens, used.completion_tokens)
        + max(price.bound_usd(used.unconfirmed_tokens_max, 0), price.bound_usd(0, used.unconfirmed_tokens_max))
        for model, used in usage.items()
        if (price := prices.get(model)) is not None
    )
    return {"tokens": float(total.tokens + total.unconfirmed_tokens_max), "usd": math.fsum(usd)}
