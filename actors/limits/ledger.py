"""What the limiter writes down before it grants anything, so that one that is started again forgets no money."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

import msgspec

from moot.actors.limits.envelopes import Grant, UsageReport
from moot.actors.limits.limiter import BudgetAccount, Limiter
from moot.actors.limits.limiter_client import Exchange
from moot.actors.limits.settings import EndpointLimits
from moot.actors.record.files import decode_file, encode_file
from moot.protocols.errors import RecordError

_FILE = "limits.json"
_FALLEN_S = 1.0
"""Seconds between two writings of totals that did not rise."""


class DurableLimiter:
    """A limiter that writes its purses down before a reservation leaves, and now and then when calls have cost less.

    Args:
        limits: see `Limiter`.
        purses: see `Limiter`.
        ledger: where to.
        resumed: see `Limiter`.
    """

    def __init__(
        self,
        limits: Mapping[str, EndpointLimits],
        accounts: Mapping[str, BudgetAccount],
        ledger: Ledger,
        *,
        resumed: bool = False,
    ) -> None:
        self._ledger = ledger
        restarted = ledger.open(accounts)
        self._limiter = Limiter(limits, accounts, clock=time.monotonic, restarted=restarted, resumed=resumed)
        self._writing = asyncio.Lock()
        self._exchanges = self._written_exchange = 0
        self._written, self._written_at = ledger.bound(), time.monotonic()

    async def exchange(self, report: UsageReport) -> Grant:
        """See `Limiter.exchange`."""
        grant = self._limiter.exchange(report)
        self._exchanges = mine = self._exchanges + 1
        last_word = bool(report.budgets) and not report.endpoints
        if grant.reserved or last_word or self._has_fallen():
            async with self._writing:
                if self._written_exchange < mine:  # else somebody who waited, too, has written this grant down
                    await self._write()
        return grant

    async def _write(self) -> None:
        now, self._written_at = self._exchanges, time.monotonic()
        page = self._ledger.entry(self._limiter.accounts)
        self._written = page.at_most
        await asyncio.to_thread(self._ledger.write, page)
        self._written_exchange = now

    def used_ratios(self) -> dict[str, float]:
        """By budget, the share that is spent or set aside; without what has no cap."""
        found = {name: account.used_ratio for name, account in self._limiter.accounts.items()}
        return {name: ratio for name, ratio in found.items() if ratio is not None}

    def _has_fallen(self) -> bool:
        if time.monotonic() < self._written_at + _FALLEN_S:
            return False
        return any(_bound(account) < self._written[name] for name, account in self._limiter.accounts.items())


class LedgerEntry(msgspec.Struct):
    """What one owner's purses hold.

    Attributes:
        budgets: (reserved, spent) by budget and holder.
        at_most: by budget, at most how much the whole run has used, under earlier owners, too.
    """

    epoch: int
    budgets: dict[str, dict[str, tuple[float, float]]] = {}
    at_most: dict[str, float] = {}


class FileStore(Protocol):
    """What keeps files by name: a run's folder, or a store."""

    def put(self, name: str, data: bytes) -> None:
        """Write a file whole."""
        ...

    def get(self, name: str) -> bytes | None:
        """A file's content; None when there is none."""
        ...


class Ledger:
    """A small file of the record.

    Args:
        files: of the record.
        epoch: the owner's number: what an earlier owner wrote does not count, its calls are in the record.
    """

    def __init__(self, files: FileStore, epoch: int) -> None:
        self._files, self._epoch = files, epoch

    def open(self, accounts: Mapping[str, BudgetAccount]) -> bool:
        """Fill the purses with what a limiter of the same owner wrote; False when there was none before.

        Raises:
            RecordError: what it wrote cannot be read, or nothing can be written.
        """
        page = self._own()
        if page is None:
            self.write(self.entry(accounts))
            return False
        for name, totals in page.budgets.items():
            for holder, (reserved, spent) in totals.items():
                if name in accounts:
                    accounts[name].settle(holder, reserved=reserved, spent=spent)
        return True

    def entry(self, accounts: Mapping[str, BudgetAccount]) -> LedgerEntry:
        """What the purses hold now."""
        totals = {name: account.totals() for name, account in accounts.items()}
        return LedgerEntry(self._epoch, totals, {name: _bound(account) for name, account in accounts.items()})

    def write(self, page: LedgerEntry) -> None:
        """Write a page down, in place of the one before.

        Raises:
            RecordError: when it cannot be written, or a later owner has written one: its money is not this one's.
        """
        before = self.read()
        if before is not None and before.epoch > self._epoch:
            raise RecordError("limits.json: another process has taken the run over")
        self._files.put(_FILE, encode_file(page))

    def reserved(self) -> dict[str, float]:
        """By budget, what was still reserved when this owner last wrote; empty when it wrote nothing.

        Raises:
            RecordError: as `read`.
        """
        page = self._own()
        budgets = {} if page is None else page.budgets
        return {name: sum(reserved for reserved, _ in totals.values()) for name, totals in budgets.items()}

    def bound(self) -> dict[str, float]:
        """By budget, at most how much the run had used when this owner last wrote; empty when it wrote nothing.

        Raises:
            RecordError: as `read`.
        """
        page = self._own()
        return {} if page is None else page.at_most

    def _own(self) -> LedgerEntry | None:
        page = self.read()
        return page if page is not None and page.epoch == self._epoch else None

    def read(self) -> LedgerEntry | None:
        """What lies in the file; None when there is none.

        Raises:
            RecordError: it cannot be read or is illegible, so that nobody knows what has been spent.
        """
        try:
            raw = self._files.get(_FILE)
        except OSError as error:
            raise RecordError(f"{_FILE} cannot be read: {error.strerror}") from error
        return None if raw is None else decode_file(_FILE, raw, LedgerEntry)


def _bound(account: BudgetAccount) -> float:
    return account.spent + account.reserved


class ReportDeduplicator:
    """Takes each report of a holder once, for it tells of changes, and what it is granted counts as used.

    One that comes again gets the same grant; one that was overtaken gets none, for nobody waits for it.

    Args:
        exchange: the limiter's.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._latest: dict[str, tuple[int, asyncio.Future[Grant]]] = {}

    async def exchange(self, report: UsageReport) -> Grant:
        """See `Limiter.exchange`."""
        number, granting = self._latest.get(report.holder, (-1, None))
        if report.number < number:
            return Grant()
        if report.number > number or granting is None:
            granting = asyncio.ensure_future(self._exchange(report))
            self._latest[report.holder] = (report.number, granting)
        return await asyncio.shield(granting)
