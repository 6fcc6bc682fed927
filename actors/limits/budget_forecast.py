"""Budget forecast: how many debates may be open at once so that what is left of a run's budgets finishes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from moot.actors.models.prices import Price
from moot.actors.models.usage_totals import UsageTotals, budget_use, total_of

UNBOUNDED = 2**31
"""Bound on open debates where no budget applies."""


@dataclass(frozen=True, slots=True)
class DebateCostBound:
    """Upper bound of a debate's use of one budget, known before anything is asked.

    Attributes:
        debate: most that a whole debate uses, by its protocol's call plan.
        call: most that is reserved for one of its calls.
    """

    debate: float
    call: float


class BudgetForecast:
    """Forecasts the number of debates that a budget can finish, from the use of debates that have ended.

    An open debate is expected to use the mean of ended debates, with its bound counted as one more of them: short
    debates end first, and a mean of few is unreliable. Without a bound, the largest use so far replaces the mean, and
    one debate is open until another has ended. One call's reservation stays free, because a call starts only when its
    upper bound fits. One debate may always be open: the limiter decides whether its next call fits, and stops the run
    if not.

    Args:
        left: by budget, `usd` or `tokens`, what earlier sessions left.
        bounds: by budget; a budget has none if the protocol declares no call plan.
        prices: by model name.
    """

    def __init__(
        self, left: Mapping[str, float], bounds: Mapping[str, DebateCostBound], prices: Mapping[str, Price]
    ) -> None:
        self._prices = dict(prices)
        self._accounts = {name: _Account(amount, bounds.get(name)) for name, amount in left.items()}

    @property
    def most_open(self) -> int:
        """How many debates may be open now, at least one."""
        return max(1, min((account.covers for account in self._accounts.values()), default=UNBOUNDED))

    def settle(self, paid: Mapping[str, UsageTotals], *, whole: bool) -> None:
        """Settle a debate that has ended, or was cancelled.

        Args:
            paid: use of its calls by model; empty says nothing about the use of others.
            whole: whether the debate ended and none of its replies came from the record, so that `paid` is its full
                use.
        """
        if not paid:
            return
        used, unknown = budget_use(paid, self._prices), total_of(paid).calls_without_usage > 0
        for name, account in self._accounts.items():
            account.take(used[name], whole=whole, unknown=unknown)


class _Account:
    """One budget."""

    def __init__(self, left: float, bound: DebateCostBound | None) -> None:
        self._left, self._bound = left, bound
        self._ended, self._sum, self._largest = 0, 0.0, 0.0

    @property
    def _expected(self) -> float:
        """Expected use of a debate; infinite while nothing is known."""
        if self._bound is None and not self._ended:
            return math.inf
        first = self._largest if self._bound is None else self._bound.debate
        return (first + self._sum) / (self._ended + 1)

    @property
    def covers(self) -> int:
        """Number of whole debates that the rest of the budget covers."""
        expected, call = self._expected, 0.0 if self._bound is None else self._bound.call
        if not expected:
            return UNBOUNDED
        return max(0, min(UNBOUNDED, int((self._left - call) / expected)))

    def take(self, amount: float, *, whole: bool, unknown: bool) -> None:
        """Settle a debate; if its use is not fully known, the limiter keeps the reservation."""
        if unknown:
            expected = self._expected
            self._left -= max(amount, expected if math.isfinite(expected) else 0.0)
            return
        self._left -= amount
        if whole:
            self._ended, self._sum, self._largest = self._ended + 1, self._sum + amount, max(self._largest, amount)
