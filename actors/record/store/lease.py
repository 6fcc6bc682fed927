"""Lease of a record in a store, timed by the store's clock.

owner.json      the lease's holder, rewritten at every heartbeat
claims/ID       a process that wants to become the holder; the earliest of those that see each other does
claims/at-ID    written to learn the store's time
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar
from uuid import uuid4

import msgspec
import structlog

from moot.actors.record.store.store import Store
from moot.protocols.errors import RecordError, RunFolderBusy

LEASE_S = 30.0
"""Seconds after its holder's last heartbeat at which a lease ends."""

BEAT_S = 5.0
SETTLE_S = 1.5
"""Seconds between a claim and the count of the claims: more than the rounding of a store's times."""

_LOST_S = 20.0
"""Seconds without a heartbeat after which a holder gives up; some time before another may begin."""

_SLOW_S = 10.0
"""Seconds after which a claim is ignored."""

_POLL_S = 1.0
_log = structlog.get_logger(__name__)
T = TypeVar("T")


class Holder(msgspec.Struct):
    """Content of owner.json, or of a claim.

    Attributes:
        beat: increases while the holder is alive.
        released: whether it has released the lease.
    """

    id: str
    host: str
    pid: int
    beat: int = 0
    released: bool = False

    def __str__(self) -> str:
        return f"{self.host}, pid {self.pid}"


class Lease:
    """Lease of a record: the right to change it, from `acquire` to `release` or until it is lost.

    Args:
        store: of the record.
        holder: this process.
        in_order: whether the previous holder has released the lease, or there was none.
    """

    def __init__(self, store: Store, holder: Holder, *, in_order: bool) -> None:
        self.in_order = in_order
        self._store, self._me = store, holder
        self._renewing: asyncio.Future[str] | None = None

    @classmethod
    async def acquire(cls, store: Store) -> Lease:
        """Wait until the lease of a dead holder has expired, and become the next holder.

        Raises:
            RunFolderBusy: the holder is alive, or another process was first.
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
        """Run work that needs the lease, renewing it; the work is cancelled if the lease is lost.

        Raises:
            RecordError: the lease was lost; the store then accepts nothing more from this process.
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
        """Release the lease. A lease that cannot be released expires."""
        if self._renewing is not None:  # a late write of it would show the holder as alive
            _, late = await asyncio.wait([self._renewing], timeout=_LOST_S)
            if late:
                return
        with suppress(RecordError):
            owner = await asyncio.to_thread(_owner, self._store)
            if owner is not None and owner.id == self._me.id:
                self._me.released = True
                await asyncio.to_thread(_write, self._store, "owner.json", self._me)

    async def _beat(self) -> str:
        """Renew the lease until it is lost; returns the reason."""
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
    """Waits until the lease has expired or was released; returns its last holder, None without one."""
    first: Holder | None = None
    while True:
        owner, left_s = await asyncio.to_thread(_seen, store, me)
        if owner is None or owner.released or left_s <= 0.0:
            return owner
        if first is None:
            first = owner
            _log.warning(
                "the run was being written by another process; if that is gone, its lease expires",
                run=store.uri,
                owner=str(owner),
                waiting_at_most_s=round(left_s),
            )
        elif (first.id, first.beat) != (owner.id, owner.beat):
            raise RunFolderBusy(f"{store.uri} is being written by another process ({owner}); wait for it or stop it")
        await asyncio.sleep(min(_POLL_S, left_s))


def _seen(store: Store, me: Holder) -> tuple[Holder | None, float]:
    """The holder, and the remaining seconds of its lease."""
    owner = _owner(store)
    if owner is None or owner.released:
        return owner, 0.0
    store.put(f"claims/at-{me.id}", b"")
    beaten, now = store.modified_at("owner.json"), store.modified_at(f"claims/at-{me.id}")
    return owner, LEASE_S if beaten is None or now is None else LEASE_S - (now - beaten)


async def _win(store: Store, me: Holder, before: Holder | None) -> None:
    """Become the holder, unless there is an earlier claim or another process has become it meanwhile."""
    began = time.monotonic()
    await asyncio.to_thread(_write, store, f"claims/{me.id}", me)
    await asyncio.sleep(SETTLE_S)
    winner = await asyncio.to_thread(_earliest_claim, store, me)
    owner = await asyncio.to_thread(_owner, store)  # after the claims: the winner removes its claim last
    if winner.id == me.id and owner != before:
        winner = owner or winner
    if winner.id != me.id:
        raise RunFolderBusy(f"{store.uri} is being taken by another process ({winner}); wait for it or stop it")
    if time.monotonic() - began > _SLOW_S:
        raise RecordError(f"{store.uri}: the store answers too slowly to take the run")
    await asyncio.to_thread(_write, store, "owner.json", me)


def _earliest_claim(store: Store, me: Holder) -> Holder:
    """The earliest claim. Stale claims, of processes that died, do not count and are removed."""
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
    except (ValueError, RecursionError):
        return None


def _write(store: Store, name: str, holder: Holder) -> None:
    store.put(name, msgspec.json.encode(holder))
