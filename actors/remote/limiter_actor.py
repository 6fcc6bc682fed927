"""The Ray actor that grants rates, concurrency and money to all processes of a run."""

from __future__ import annotations

import msgspec

from moot.actors.household import (
    build_limiter,
)
from moot.actors.limits.envelopes import Report
from moot.actors.limits.ledger import Once
from moot.actors.meter import BUDGET_USED
from moot.actors.remote.run_actor import RunActor


class LimiterActor(RunActor):
    """Grants rates, concurrency and money to all processes of a run."""

    kind = "limiter"

    async def _set_up(self) -> None:
        self._limiter = build_limiter(self._spec)
        self._once = Once(self._limiter.exchange)

    async def exchange(self, raw: bytes) -> bytes:
        """See `Limiter.exchange`."""
        await self._up()
        grant = await self._once.exchange(msgspec.msgpack.decode(raw, type=Report))
        for budget, ratio in self._limiter.used_ratios().items():
            self._meter.put(BUDGET_USED, ratio, budget)
        return msgspec.msgpack.encode(grant)
