"""First asks of each role: a run stops by itself if none of them gets a usable reply, before it pays for more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from moot.protocols.errors import REPLAY_DIVERGED, UNSENT
from moot.protocols.messages import AskResult, family_of

MOST_UNUSABLE = 20
"""Default number of first asks of a role that may all be in vain."""

_NO_REPLIES = ("", UNSENT, REPLAY_DIVERGED)
"""Failures that say nothing about a model's replies."""


_LONGEST_WHY = 120

_POLL_S = 0.2
"""Seconds after which a process that waits asks again how those of the others ended."""


class NothingUsable(Exception):
    """None of the first asks of a role got a usable reply; `str()` is the last ask's role, a colon, and the reason."""

    kind = "unusable"


class AskCounts(msgspec.Struct, frozen=True):
    """Asks of a role family by one process, until one gets a usable reply.

    Attributes:
        failed: number of asks without a usable reply.
        in_flight: number of asks under way.
        usable: whether one got a usable reply.
        role: of the last failed ask; empty before one.
        why: why that had no usable reply.
    """

    failed: int = 0
    in_flight: int = 0
    usable: bool = False
    role: str = ""
    why: str = ""


class Admission(msgspec.Struct, frozen=True):
    """Whether a process may make one more ask of a role family.

    Attributes:
        admitted: whether it may; the ask then counts as under way.
        usable: whether some process got a usable reply: no ask needs to be admitted any more.
        failed: number of asks without a usable reply, over all processes.
        role, why: of the last one of a process; see `AskCounts`.
    """

    admitted: bool = False
    usable: bool = False
    failed: int = 0
    role: str = ""
    why: str = ""


class FirstAskCounts:
    """First asks of all processes of a run. What a process states replaces what it stated before.

    Args:
        most: number of first asks of a role family that may be in vain, over all processes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_family: dict[str, dict[str, AskCounts]] = {}

    def exchange(self, sender: str, family: str, stated: AskCounts, *, wants: bool) -> Admission:
        """Note what a process states, without the ask that it wants to make, if any."""
        its = self._by_family.setdefault(family, {})
        its[sender] = stated
        failed, usable = sum(each.failed for each in its.values()), any(each.usable for each in its.values())
        admitted = wants and not usable and failed + sum(each.in_flight for each in its.values()) < self._most
        if admitted:
            its[sender] = msgspec.structs.replace(stated, in_flight=stated.in_flight + 1)
        last = max((stated, *its.values()), key=lambda each: bool(each.why))
        return Admission(admitted, usable, failed, last.role, last.why)

    def forget(self, sender: str) -> None:
        """Drop what a process stated, as it was lost with what it had under way."""
        for its in self._by_family.values():
            its.pop(sender, None)


class FirstAskExchange(Protocol):
    """Exchange with the counts of all processes of a run."""

    async def __call__(self, family: str, stated: AskCounts, *, wants: bool) -> Admission:
        """See `FirstAskCounts.exchange`."""
        ...


def local_exchange(counts: FirstAskCounts, sender: str = "") -> FirstAskExchange:
    """Exchange with counts in the same process."""

    async def exchange(family: str, stated: AskCounts, *, wants: bool) -> Admission:
        return counts.exchange(sender, family, stated, wants=wants)

    return exchange


@dataclass(slots=True, eq=False)
class _Role:
    """Asks of a role family without a usable reply so far."""

    stated: AskCounts = field(default_factory=AskCounts)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)

    def add(self, in_flight: int) -> None:
        self.stated = msgspec.structs.replace(self.stated, in_flight=self.stated.in_flight + in_flight)

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


@dataclass(slots=True, eq=False)
class PaidAsk:
    """An admitted ask; its caller sets the result."""

    result: AskResult | None = None


class FirstAsks:
    """Admits the asks of a process: at most `most` of a role, over all processes, until one of them got a usable reply.

    Args:
        most: number of first asks of a role family that may be in vain; 0 for no bound.
        proven: role families that have had a usable reply in an earlier session of the run.
        exchange: with the counts of all processes; None for a process that counts for itself.
    """

    def __init__(self, most: int = 0, proven: Collection[str] = (), exchange: FirstAskExchange | None = None) -> None:
        self._most, self._proven = most, set(proven)
        self._exchange = exchange or local_exchange(FirstAskCounts(most))
        self._roles: dict[str, _Role] = {}
        self._reports: set[asyncio.Task[Admission]] = set()

    @asynccontextmanager
    async def admitted(self, role: str) -> AsyncIterator[PaidAsk]:
        """Hold an ask of a role until it may be paid for; the body sets its result. An ask beyond the first ones waits
        for them.

        Raises:
            NothingUsable: all of the first asks of the role's family were in vain.
        """
        ask, family = PaidAsk(), family_of(role)
        if not self._most or family in self._proven:
            yield ask
            return
        its = self._roles.setdefault(family, _Role())
        try:
            async with its.turn:
                admitted = await self._admit(family, its)
        except asyncio.CancelledError:
            self._report(family, its)  # the request may have been granted
            raise
        try:
            yield ask
        finally:
            if admitted:
                its.add(-1)
                self._learn(role, its, ask.result)
                self._report(family, its)

    async def _admit(self, family: str, its: _Role) -> bool:
        """Wait until an ask is admitted (True), or needs no admission any more."""
        while family not in self._proven:
            changed = its.changed
            if (found := await self._send(family, its, wants=True)).admitted:
                return True
            if found.usable:
                self._proven.add(family)
            elif found.failed >= self._most:
                raise NothingUsable(
                    f"{found.role}: none of the first {self._most} asks of the role {family!r} got a usable reply: "
                    f"{found.why}"
                )
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), _POLL_S)
        return False

    def _learn(self, role: str, its: _Role, result: AskResult | None) -> None:
        if result is not None and result.data is not None:
            its.stated = msgspec.structs.replace(its.stated, usable=True)
            self._proven.add(family_of(role))
        elif result is not None and result.outcome == "failed" and result.failure not in _NO_REPLIES:
            error = result.error.partition(" (")[0]  # without a remedy in brackets: the run's end has one
            why = f"{result.model}: {result.failure}: {error[:_LONGEST_WHY]}"
            failed = its.stated.failed + 1
            its.stated = msgspec.structs.replace(its.stated, failed=failed, role=role, why=why)

    def _report(self, family: str, its: _Role) -> None:
        """Tell the other processes, in the background."""
        task = asyncio.create_task(self._send(family, its, wants=False))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def _send(self, family: str, its: _Role, *, wants: bool) -> Admission:
        async with its.sending:  # the last statement to arrive is the latest
            found = await self._exchange(family, its.stated, wants=wants)
            if found.admitted:
                its.add(1)
        if not wants:
            its.wake()
        return found
