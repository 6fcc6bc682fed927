"""Ledger of the limiter: written before anything is granted, so that a restarted limiter knows all spending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

import msgspec

from moot.actors.limits.budget_account import BudgetAccount
from moot.actors.limits.envelopes import Grant, LimiterState, UsageReport
from moot.actors.limits.limiter import Limiter
from moot.actors.limits.limiter_client import Exchange
from moot.actors.limits.settings import EndpointLimits
from moot.actors.record.files import decode_file, encode_file
from moot.protocols.errors import RecordError

_FILE = "limits.json"
_FALLEN_S = 1.0
"""Seconds between two writes when no total rises."""


class DurableLimiter:
    """Limiter that writes its accounts to the ledger before it grants a reservation, and when totals have fallen.

    Args:
        limits: see `Limiter`.
        accounts: see `Limiter`.
        ledger: stores the accounts.
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
                if self._written_exchange < mine:  # else a concurrent exchange has already written this grant
                    await self._write()
        return grant

    async def _write(self) -> None:
        now, self._written_at = self._exchanges, time.monotonic()
        page = self._ledger.entry(self._limiter.accounts)
        self._written = page.at_most
        await asyncio.to_thread(self._ledger.write, page)
        self._written_exchange = now

    def used_ratios(self) -> dict[str, float]:
        """Share of each budget that is spent or reserved; budgets without a cap are left out."""
        found = {name: account.used_ratio for name, account in self._limiter.accounts.items()}
        return {name: ratio for name, ratio in found.items() if ratio is not None}

    def state(self) -> LimiterState:
        """See `Limiter.state`."""
        return self._limiter.state()

    def _has_fallen(self) -> bool:
        if time.monotonic() < self._written_at + _FALLEN_S:
            return False
        return any(_bound(account) < self._written[name] for name, account in self._limiter.accounts.items())


class LedgerEntry(msgspec.Struct):
    """Ledger entry: the accounts of one owner.

    Attributes:
        budgets: (reserved, spent) by budget and holder.
        at_most: by budget, upper bound of the use of the whole run, earlier owners included.
    """

    epoch: int
    budgets: dict[str, dict[str, tuple[float, float]]] = {}
    at_most: dict[str, float] = {}


class FileStore(Protocol):
    """Store of files by name: a run's folder, or an object store."""

    def put(self, name: str, data: bytes) -> None:
        """Replace the content of a file."""
        ...

    def get(self, name: str) -> bytes | None:
        """Content of a file; None when it does not exist."""
        ...


class Ledger:
    """Ledger file of a record.

    Args:
        files: of the record.
        epoch: the owner's number. Entries of an earlier owner do not count: its calls are in the record.
    """

    def __init__(self, files: FileStore, epoch: int) -> None:
        self._files, self._epoch = files, epoch

    def open(self, accounts: Mapping[str, BudgetAccount]) -> bool:
        """Load the accounts of an earlier limiter of the same owner; False when there was none.

        Raises:
            RecordError: the ledger cannot be read or written.
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
        """Entry of the current accounts."""
        totals = {name: account.totals() for name, account in accounts.items()}
        return LedgerEntry(self._epoch, totals, {name: _bound(account) for name, account in accounts.items()})

    def write(self, page: LedgerEntry) -> None:
        """Replace the entry.

        Raises:
            RecordError: it cannot be written, or a later owner has written one.
        """
        before = self.read()
        if before is not None and before.epoch > self._epoch:
            raise RecordError("limits.json: another process has taken the run over")
        self._files.put(_FILE, encode_file(page))

    def reserved(self) -> dict[str, float]:
        """By budget, what was still reserved at this owner's last write; empty when it wrote nothing.

        Raises:
            RecordError: as `read`.
        """
        page = self._own()
        budgets = {} if page is None else page.budgets
        return {name: sum(reserved for reserved, _ in totals.values()) for name, totals in budgets.items()}

    def bound(self) -> dict[str, float]:
        """By budget, upper bound of the run's use at this owner's last write; empty when it wrote nothing.

        Raises:
            RecordError: as `read`.
        """
        page = self._own()
        return {} if page is None else page.at_most

    def _own(self) -> LedgerEntry | None:
        page = self.read()
        return page if page is not None and page.epoch == self._epoch else None

    def read(self) -> LedgerEntry | None:
        """Read the file; None when there is none.

        Raises:
            RecordError: the file cannot be read or parsed, so that the spending is unknown.
        """
        try:
            raw = self._files.get(_FILE)
        except OSError as error:
            raise RecordError(f"{_FILE} cannot be read: {error.strerror}") from error
        return None if raw is None else decode_file(_FILE, raw, LedgerEntry)


def _bound(account: BudgetAccount) -> float:
    return account.spent + account.reserved


class ReportDeduplicator:
    """Deduplicates reports by their number: a report contains changes, and its grant counts as used.

    A duplicate gets the same grant. A report that a later one overtook gets none, because nobody waits for it.

    Args:
        exchange: of the limiter.
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
