"""Budget account: what a run has reserved and spent of its cap, by holder."""

from __future__ import annotations

import math
from collections.abc import Collection


class BudgetAccount:
    """Budget account: keeps `spent + reserved <= cap` at all times.

    Holders report totals, not changes: a duplicate report, or one to a restarted limiter, does no harm. A dead holder's
    reservation counts as spent, because its calls may have been billed.

    Args:
        cap: most that may be used; None for no bound.
        spent: use by earlier sessions of the run.
    """

    def __init__(self, cap: float | None, spent: float = 0.0) -> None:
        self.cap = cap
        self._before = spent
        self._spent: dict[str, float] = {}
        self._reserved: dict[str, float] = {}

    @property
    def spent(self) -> float:
        """Amount that is known to be used."""
        return self._before + math.fsum(self._spent.values())

    @property
    def reserved(self) -> float:
        """Amount reserved for calls of unknown cost, those of dead holders included."""
        return math.fsum(self._reserved.values())

    @property
    def free(self) -> float:
        """Amount that may still be reserved; infinite without a cap."""
        return math.inf if self.cap is None else max(0.0, self.cap - self.spent - self.reserved)

    @property
    def used_ratio(self) -> float | None:
        """Share of the cap that is spent or reserved; None without a cap."""
        return None if not self.cap else min(1.0, (self.spent + self.reserved) / self.cap)

    def settle(self, holder: str, *, reserved: float, spent: float) -> None:
        """Apply a holder's totals: what it still has reserved, and what its calls have used."""
        self._reserved[holder] = reserved
        self._spent[holder] = spent

    def reserve(self, holder: str, amount: float) -> bool:
        """Reserve `amount` more for a holder; False, without effect, when it does not fit."""
        if amount > self.free:
            return False
        self._reserved[holder] = self._reserved.get(holder, 0.0) + amount
        return True

    def left(self, dead: Collection[str]) -> float:
        """Amount that would be free if all live holders released their reservations; infinite without a cap."""
        if self.cap is None:
            return math.inf
        lost = math.fsum(self._reserved.get(holder, 0.0) for holder in dead)
        return max(0.0, self.cap - self.spent - lost)

    def totals(self) -> dict[str, tuple[float, float]]:
        """(reserved, spent) by holder, for the ledger entry before a grant."""
        holders = self._reserved.keys() | self._spent.keys()
        return {each: (self._reserved.get(each, 0.0), self._spent.get(each, 0.0)) for each in holders}
