"""Reports that reach the limiter twice, or late, because a call was lost on its way."""

from __future__ import annotations

import asyncio

from moot.actors.limits.envelopes import Grant, Report
from moot.actors.limits.gate import Exchange


class Once:
    """Takes each report of a holder once, for it tells of changes, and what it is granted counts as used.

    One that comes again gets the same grant; one that was overtaken gets none, for nobody waits for it.

    Args:
        exchange: the limiter's.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._latest: dict[str, tuple[int, asyncio.Future[Grant]]] = {}

    async def exchange(self, report: Report) -> Grant:
        """See `Limiter.exchange`."""
        number, granting = self._latest.get(report.holder, (-1, None))
        if report.number < number:
            return Grant()
        if report.number > number or granting is None:
            granting = asyncio.ensure_future(self._exchange(report))
            self._latest[report.holder] = (report.number, granting)
        return await asyncio.shield(granting)
