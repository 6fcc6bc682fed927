"""What so many cases use in all: calls, tokens, money, failures, each with an interval.

Whole debates are drawn again (a bootstrap over the pilot's cases), so that a debate that is long and one that is dear
are one debate. An interval is for what this run will use: it is uncertain by the pilot's few cases, and by the draw of
the planned ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from moot.deploy.planning.pilot import Debate, Pilot, Step
from moot.deploy.planning.programme import Floats

LEVEL = 0.9
"""Coverage of every interval."""

_RESAMPLES = 2_000
_JEFFREYS = 0.5


class Estimate(NamedTuple):
    """A figure and the ends of its interval."""

    value: float
    low: float
    high: float


class Totals(NamedTuple):
    """Over all cases.

    Attributes:
        prompt_tokens, completion_tokens: of the calls whose server said; a lower bound if one did not.
        unconfirmed_tokens: at most so many beyond, in attempts that may be billed without a word of what they used.
        cost_usd: of the calls whose price and use are known; None when that is none.
        calls_without_usage, calls_without_price: share of the calls.
        failed: cases.
        skipped: share of the cases.
    """

    calls: Estimate
    requests: Estimate
    prompt_tokens: Estimate
    completion_tokens: Estimate
    unconfirmed_tokens: float
    cost_usd: Estimate | None
    calls_without_usage: float
    calls_without_price: float
    failed: Estimate
    skipped: Estimate


def totals(pilot: Pilot, cases: int, random: np.random.Generator) -> Totals:
    """What `cases` cases like the pilot's use.

    Args:
        pilot: the pilot.
        cases: how many.
        random: draws.
    """

    def total(of: Callable[[Step], float]) -> Estimate:
        return _total(_by_debate(pilot, of), cases, random)

    calls = sum(len(debate.steps) for debate in pilot.debates)
    unpriced = sum(pilot.prices[step.model] is None for debate in pilot.debates for step in debate.steps)
    untold = sum(_untold(step) for debate in pilot.debates for step in debate.steps)
    costs = [[_cost_usd(pilot, step) for step in debate.steps] for debate in pilot.debates]
    known = any(cost is not None for row in costs for cost in row) or not calls
    by_debate = np.array([sum(cost for cost in row if cost is not None) for row in costs], float)
    return Totals(
        calls=total(lambda step: 1.0),
        requests=total(lambda step: step.requests),
        prompt_tokens=total(lambda step: step.prompt or 0),
        completion_tokens=total(lambda step: step.completion or 0),
        unconfirmed_tokens=float(np.mean([debate.unconfirmed_tokens for debate in pilot.debates])) * cases,
        cost_usd=_total(by_debate, cases, random) if known else None,
        calls_without_usage=untold / max(1, calls),
        calls_without_price=unpriced / max(1, calls),
        failed=_cases(pilot, lambda debate: debate.failed, cases, random),
        skipped=_share(_cases(pilot, lambda debate: debate.skipped, cases, random), cases),
    )


def _untold(step: Step) -> bool:
    return step.prompt is None or step.completion is None


def _cost_usd(pilot: Pilot, step: Step) -> float | None:
    price = pilot.prices[step.model]
    if price is None or step.prompt is None or step.completion is None:
        return None
    return price.bound_usd(step.prompt, step.completion)


def _by_debate(pilot: Pilot, of: Callable[[Step], float]) -> Floats:
    return np.array([sum(of(step) for step in debate.steps) for debate in pilot.debates], float)


def _total(by_debate: Floats, cases: int, random: np.random.Generator) -> Estimate:
    count = len(by_debate)
    weights = random.multinomial(count, np.full(count, 1.0 / count), size=_RESAMPLES) / count
    means = weights @ by_debate
    spread = np.sqrt(np.maximum(0.0, weights @ by_debate**2 - means**2))
    drawn = np.maximum(0.0, means * cases + spread * np.sqrt(cases) * random.standard_normal(_RESAMPLES))
    value = float(by_debate.mean()) * cases
    low, high = np.quantile(drawn, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return Estimate(value, min(value, float(low)), max(value, float(high)))


def _cases(pilot: Pilot, is_one: Callable[[Debate], bool], cases: int, random: np.random.Generator) -> Estimate:
    """How many cases are of a kind: drawn from what the pilot's count leaves possible, which is never nothing."""
    found, count = sum(is_one(debate) for debate in pilot.debates), len(pilot.debates)
    shares = random.beta(found + _JEFFREYS, count - found + _JEFFREYS, size=_RESAMPLES)
    low, high = np.quantile(random.binomial(cases, shares), [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    value = found / count * cases
    return Estimate(value, min(value, float(low)), max(value, float(high)))


def _share(estimate: Estimate, cases: int) -> Estimate:
    return Estimate(*(each / cases for each in estimate))
