"""Who owns a record, for as long as some work on it takes: in a store by a lease, judged by the store's clock.

owner.json      the lease's holder, written anew at every beat
claims/ID       somebody who wants to become it; the earliest of those that see each other does
claims/at-ID    written to learn the store's time
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar
from uuid import uuid4

import msgspec
import structlog

from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.folder import Ownership, RunFolder, begin_epoch
from moot.actors.record.store.mirror import pull
from moot.actors.record.store.store import Store
from moot.protocols.errors import RecordError, RunFolderBusy

LEASE_S = 30.0
"""Seconds after its holder's last beat at which a lease ends."""

BEAT_S = 5.0
SETTLE_S = 1.5
"""Seconds between a claim and the count of the claims: more than a store's times are rounded to."""

_LOST_S = 20.0
"""Seconds without a beat after which a holder gives up; some time before another may begin."""

_SLOW_S = 10.0
"""Seconds after a claim at which it is not acted upon any more."""

_POLL_S = 1.0
_log = structlog.get_logger(__name__)
T = TypeVar("T")


class Holder(msgspec.Struct):
    """What stands in owner.json, or in a claim.

    Attributes:
        beat: grows as long as the holder lives.
        released: whether it has gone in order.
    """

    id: str
    host: str
    pid: int
    beat: int = 0
    released: bool = False

    def __str__(self) -> str:
        return f"{self.host}, pid {self.pid}"


class Lease:
    """The right to change a record, from `take` to `release` or until it is lost.

    Args:
        store: of the record.
        holder: this process.
        in_order: whether whoever had it before has released it, or nobody has had it.
    """

    def __init__(self, store: Store, holder: Holder, *, in_order: bool) -> None:
        self.in_order = in_order
        self._store, self._me = store, holder
        self._renewing: asyncio.Future[str] | None = None

    @classmethod
    async def acquire(cls, store: Store) -> Lease:
        """Wait until a holder that does not live any more has lost the lease, and become the next one.

        Raises:
            RunFolderBusy: the holder lives, or somebody else was first.
            RecordError: the store cannot be read or written.
        """
        me = Holder(uuid4().hex, socket.gethostname(), os.getpid())
        try:
            before = await _wait_for_its_end(store, me)
            await _win(store, me, before)
        finally:
            with suppress(RecordError):
                await asyncio.to_thread(store.delete, [f"claims/at-{me.id}", f"claims/{me.id}"])
        return cls(store, me, in_order=before is None or before.released)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that needs the lease, renewing it; when it is lost, the work is cancelled.

        Raises:
            RecordError: the lease was lost; the store takes nothing more from this process then.
        """
        working, beating = asyncio.ensure_future(work), asyncio.ensure_future(self._beat())
        try:
            await asyncio.wait([working, beating], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            reason = beating.result()
            self._store.forbid(reason)
            working.cancel()
            await asyncio.wait([working])
            raise RecordError(reason)
        finally:
            for task in (working, beating):
                task.cancel()
            await asyncio.wait([working, beating])

    async def release(self) -> None:
        """Give the record up. A lease that cannot be given up ends by itself."""
        if self._renewing is not None:  # what it writes late would say that the holder lives
            _, late = await asyncio.wait([self._renewing], timeout=_LOST_S)
            if late:
                return
        with suppress(RecordError):
            owner = await asyncio.to_thread(_owner, self._store)
            if owner is not None and owner.id == self._me.id:
                self._me.released = True
                await asyncio.to_thread(_write, self._store, "owner.json", self._me)

    async def _beat(self) -> str:
        """Renew the lease until it is lost; returns why it is."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(BEAT_S)
            began = time.monotonic()
            try:
                self._renewing = asyncio.ensure_future(asyncio.to_thread(self._renew))
                async with asyncio.timeout(max(1.0, last + _LOST_S - began)):
                    reason = await asyncio.shield(self._renewing)
            except (RecordError, TimeoutError) as error:
                if time.monotonic() - last > _LOST_S:
                    return f"the run's lease could not be renewed for {_LOST_S:.0f} s ({error or 'no answer'})"
                _log.warning("the run's lease could not be renewed just now", error=str(error))
                continue
            if reason:
                return reason
            last = began

    def _renew(self) -> str:
        owner = _owner(self._store)
        if owner is None or owner.id != self._me.id:
            who = "somebody" if owner is None else f"another process ({owner})"
            return f"{self._store.uri}: {who} has taken the run over; this process ends"
        self._me.beat += 1
        _write(self._store, "owner.json", self._me)
        return ""


async def _wait_for_its_end(store: Store, me: Holder) -> Holder | None:
    """Who had the lease last: it has ended, or was released. None when nobody had it."""
    first: Holder | None = None
    while True:
        owner, left_s = await asyncio.to_thread(_seen, store, me)
        if owner is None or owner.released or left_s <= 0.0:
            return owner
        if first is None:
            first = owner
            _log.warning(
                "the run was being written by another process: is it gone, its lease ends by itself",
                run=store.uri,
                owner=str(owner),
                waiting_at_most_s=round(left_s),
            )
        elif (first.id, first.beat) != (owner.id, owner.beat):
            raise RunFolderBusy(f"{store.uri} is being written by another process ({owner}); wait for it or stop it")
        await asyncio.sleep(min(_POLL_S, left_s))


def _seen(store: Store, me: Holder) -> tuple[Holder | None, float]:
    """The holder, and how many seconds of its lease are left."""
    owner = _owner(store)
    if owner is None or owner.released:
        return owner, 0.0
    store.put(f"claims/at-{me.id}", b"")
    beaten, now = store.modified_at("owner.json"), store.modified_at(f"claims/at-{me.id}")
    return owner, LEASE_S if beaten is None or now is None else LEASE_S - (now - beaten)


async def _win(store: Store, me: Holder, before: Holder | None) -> None:
    """Become the holder, unless an earlier claim is there or somebody has become it meanwhile."""
    began = time.monotonic()
    await asyncio.to_thread(_write, store, f"claims/{me.id}", me)
    await asyncio.sleep(SETTLE_S)
    winner = await asyncio.to_thread(_earliest_claim, store, me)
    owner = await asyncio.to_thread(_owner, store)  # after the claims: who has won takes its claim away last
    if winner.id == me.id and owner != before:
        winner = owner or winner
    if winner.id != me.id:
        raise RunFolderBusy(f"{store.uri} is being taken by another process ({winner}); wait for it or stop it")
    if time.monotonic() - began > _SLOW_S:
        raise RecordError(f"{store.uri}: the store answers too slowly to take the run")
    await asyncio.to_thread(_write, store, "owner.json", me)


def _earliest_claim(store: Store, me: Holder) -> Holder:
    """Claims that lie about since somebody died do not count, and are taken away."""
    found = store.modified("claims")
    mine = found.get(f"claims/{me.id}")
    if mine is None:
        raise RecordError(f"{store.uri}: the store answers too slowly to take the run")
    store.delete(name for name, at in found.items() if at < mine - LEASE_S)
    claims = sorted((at, name) for name, at in found.items() if at >= mine - LEASE_S and "/at-" not in name)
    return next(filter(None, (_read(store, name) for _, name in claims)), me)


def _owner(store: Store) -> Holder | None:
    return _read(store, "owner.json")


def _read(store: Store, name: str) -> Holder | None:
    try:
        return msgspec.json.decode(store.get(name) or b"", type=Holder)
    except msgspec.DecodeError:
        return None


def _write(store: Store, name: str, holder: Holder) -> None:
    store.put(name, msgspec.json.encode(holder))


class RecordOwner:
    """The right to write a record, from `take` to the end of `hold`; both are called once.

    Args:
        folder: the record.
        held: what keeps others away.
    """

    def __init__(self, folder: RunFolder, held: Ownership | Lease) -> None:
        self._folder, self._held = folder, held

    @classmethod
    async def acquire(cls, folder: RunFolder) -> RecordOwner:
        """Become the owner. In a store this waits until an owner that was killed has lost its lease.

        Raises:
            RunFolderBusy: another live process owns the record.
            RecordError: it cannot be written.
        """
        return cls(folder, await Lease.acquire(folder.store) if folder.store is not None else Ownership.acquire(folder))

    async def run(self, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        """Do the work with this owner's number, and give the record up.

        Raises:
            RecordError: somebody else has taken the record over; the work was cancelled.
        """
        held = self._held
        if isinstance(held, Ownership):
            try:
                return await work(held.epoch)
            finally:
                held.release()
        try:
            return await held.run(self._begun(held, work))
        finally:
            await held.release()

    async def _begun(self, lease: Lease, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        return await work(await asyncio.to_thread(self._take_over, lease))

    def _take_over(self, lease: Lease) -> int:
        """What a killed owner has left is compacted at once: whatever it may still do, it can take nothing away."""
        folder = self._folder
        assert folder.store is not None
        pull(folder.store, folder.path)
        for made in (folder.journal, folder.parts):
            made.mkdir(exist_ok=True)
        number = begin_epoch(folder)
        if not lease.in_order:
            compact_leftovers(folder, number)
        return number
