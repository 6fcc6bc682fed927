"""Lease of a record in a store: one owner at a time; a process that is suspended loses it and gets an error."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import msgspec
import pytest
from stored_record import store_in

from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import RecordOwner
from moot.actors.record.store import lease
from moot.actors.record.store.lease import Holder, Lease
from moot.actors.record.store.store import Store
from moot.protocols.errors import RecordError, RunFolderBusy


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "SETTLE_S", 0.03)
    monkeypatch.setattr(lease, "BEAT_S", 0.02)
    monkeypatch.setattr(lease, "_POLL_S", 0.03)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return store_in(tmp_path / "store")


def owner_of(store: Store) -> Holder:
    return msgspec.json.decode(store.get("owner.json") or b"", type=Holder)


@pytest.mark.parametrize("content", [b"", b"{", b'{"id":"\xf3","where":"","pid":1}', b"[" * 100_000])
async def test_a_damaged_owner_is_none(content: bytes, store: Store) -> None:
    store.put("owner.json", content)
    owner = await Lease.acquire(store)
    assert owner.in_order
    await owner.release()


async def test_of_several_at_once_one_becomes_the_owner(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "SETTLE_S", 0.1)
    for _ in range(3):
        taken = await asyncio.gather(*(Lease.acquire(store) for _ in range(4)), return_exceptions=True)
        owners = [each for each in taken if isinstance(each, Lease)]
        assert len(owners) == 1
        assert all(isinstance(each, RunFolderBusy) for each in taken if each is not owners[0])
        assert list(store.sizes()) == ["owner.json"]
        await owners[0].release()


async def test_who_looked_before_another_became_the_owner_is_refused(store: Store) -> None:
    await Lease.acquire(store)
    owner = owner_of(store)
    with pytest.raises(RunFolderBusy, match=f"taken by another process .*pid {owner.pid}"):
        await lease._win(store, Holder("late", "elsewhere", 1), None)
    assert owner_of(store) == owner


async def test_a_live_owner_is_named_and_a_released_record_is_free(store: Store) -> None:
    first = await Lease.acquire(store)
    assert first.in_order
    done = asyncio.Event()
    holding = asyncio.create_task(first.run(done.wait()))
    me = owner_of(store)
    with pytest.raises(RunFolderBusy, match=f"written by .*pid {me.pid}"):
        await Lease.acquire(store)
    done.set()
    assert await holding
    await first.release()
    assert owner_of(store).released
    assert (await Lease.acquire(store)).in_order


async def test_a_renewal_under_way_does_not_take_back_what_was_given_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await Lease.acquire(store)
    put, renewing, go_on = store.put, asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow_at_first(name: str, data: bytes) -> None:
        if not go_on.is_set() and not msgspec.json.decode(data, type=Holder).released:
            loop.call_soon_threadsafe(renewing.set)
            go_on.wait(10)
        put(name, data)

    monkeypatch.setattr(store, "put", slow_at_first)
    await held.run(renewing.wait())
    giving_up = asyncio.create_task(held.release())
    await asyncio.wait([giving_up], timeout=0.05)
    go_on.set()
    await giving_up
    assert held._renewing is not None
    await held._renewing
    assert owner_of(store).released


async def test_a_dead_owner_is_waited_for_until_its_lease_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LEASE_S", 0.2)
    dead = await Lease.acquire(store)
    assert not (await Lease.acquire(store)).in_order
    with pytest.raises(RecordError, match="taken the run over"):
        await dead.run(asyncio.sleep(30))
    with pytest.raises(RecordError, match="taken the run over"):
        store.put("late", b"")


async def test_the_work_of_an_owner_that_cannot_renew_is_cancelled(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_LOST_S", 0.1)
    held = await Lease.acquire(store)
    cancelled = asyncio.Event()

    async def work() -> None:
        monkeypatch.setattr(store, "get", _unreachable)
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(RecordError, match="could not be renewed for"):
        await held.run(work())
    assert cancelled.is_set()


def _unreachable(name: str) -> bytes:
    raise RecordError(f"cannot read {name}: no route to host")


async def test_a_cancelled_owner_gives_the_record_up(store: Store, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "copy", store)
    (tmp_path / "copy").mkdir()
    owner, started = await RecordOwner.acquire(folder), asyncio.Event()

    async def work(epoch: int) -> None:
        started.set()
        await asyncio.sleep(30)

    holding = asyncio.create_task(owner.run(work))
    await started.wait()
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    assert owner_of(store).released


async def test_claims_of_the_dead_are_taken_away(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("claims/dead", msgspec.json.encode(Holder("dead", "gone", 1)))
    monkeypatch.setattr(lease, "LEASE_S", 0.05)
    await asyncio.sleep(0.1)
    held = await Lease.acquire(store)
    assert list(store.sizes()) == ["owner.json"]
    await held.release()
