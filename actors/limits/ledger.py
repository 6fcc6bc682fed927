"""What the limiter writes down before it grants anything, so that one that is started again forgets no money."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from moot.actors.limits.envelopes import Grant, Report
from moot.actors.limits.limiter import Limiter
from moot.actors.limits.purse import Purse
from moot.actors.limits.settings import EndpointLimits
from moot.actors.record.folder import write_whole


class LedgeredLimiter:
    """A limiter that writes its purses down before a reservation leaves.

    Args:
        limits: see `Limiter`.
        purses: see `Limiter`.
        ledger: where to.
    """

    def __init__(self, limits: Mapping[str, EndpointLimits], purses: Mapping[str, Purse], ledger: Ledger) -> None:
        self._ledger = ledger
        restarted = ledger.open(purses)
        self._limiter = Limiter(limits, purses, clock=time.monotonic, restarted=restarted)
        self._writing = asyncio.Lock()

    async def exchange(self, report: Report) -> Grant:
        """See `Limiter.exchange`."""
        grant = self._limiter.exchange(report)
        if grant.reserved:
            async with self._writing:
                await asyncio.to_thread(self._ledger.write, _totals(self._limiter.purses))
        return grant


class _Page(msgspec.Struct):
    epoch: int
    budgets: dict[str, dict[str, tuple[float, float]]] = {}


class Ledger:
    """A small file in the run's folder.

    Args:
        folder: the run's folder.
        epoch: the owner's number: what an earlier owner wrote does not count, its calls are in the record.
    """

    def __init__(self, folder: Path, epoch: int) -> None:
        self._file, self._epoch = folder / "limits.json", epoch

    def open(self, purses: Mapping[str, Purse]) -> bool:
        """Fill the purses with what a limiter of the same owner wrote; False when there was none before."""
        page = self.read()
        if page is None or page.epoch != self._epoch:
            self.write(_totals(purses))
            return False
        for name, totals in page.budgets.items():
            for holder, (reserved, spent) in totals.items():
                if name in purses:
                    purses[name].settle(holder, reserved=reserved, spent=spent)
        return True

    def write(self, budgets: dict[str, dict[str, tuple[float, float]]]) -> None:
        """Write down (reserved, spent) by budget and holder."""
        write_whole(self._file, msgspec.json.encode(_Page(self._epoch, budgets)))

    def read(self) -> _Page | None:
        """What lies in the file; None when there is none, or nothing legible."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=_Page)
        except (OSError, msgspec.DecodeError):
            return None


def read_reserved(folder: Path, epoch: int) -> dict[str, float]:
    """By budget, what was reserved when the limiter of the owner `epoch` last wrote; empty when it wrote nothing."""
    page = Ledger(folder, epoch).read()
    if page is None or page.epoch != epoch:
        return {}
    return {name: sum(reserved for reserved, _ in totals.values()) for name, totals in page.budgets.items()}


def _totals(purses: Mapping[str, Purse]) -> dict[str, dict[str, tuple[float, float]]]:
    return {name: purse.totals() for name, purse in purses.items()}
