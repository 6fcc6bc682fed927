"""What a process asks of the record's writers: one failed reading is the error of those who asked for it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from virtual_time import virtual_time

from moot.actors.record.debate_result import DebateResult
from moot.actors.record.recovery import History
from moot.actors.record.reply_leases import ReplyLeases
from moot.actors.record.schema import ASKED
from moot.actors.remote.peers import Peer
from moot.actors.remote.record_client import RemoteRecordClient
from moot.protocols.errors import RecordError
from moot.protocols.messages import Event


class _Writer(Peer):
    """Its disk fails once, when the first questions are there."""

    def __init__(self) -> None:
        super().__init__("writer", "here")
        self.asked: list[list[Any]] = []
        self.reading, self.goes_on = asyncio.Event(), asyncio.Event()

    async def call(self, method: str, *args: Any) -> Any:
        assert method == "history"
        self.asked.append(args[0])
        if len(self.asked) == 1:
            self.reading.set()
            await self.goes_on.wait()
            raise RecordError("the disk hiccups")
        return "life", msgspec.msgpack.encode([History() for _ in args[0]])


@virtual_time
async def test_a_history_that_cannot_be_read_leaves_nobody_else_waiting() -> None:
    writer = _Writer()
    record_client = RemoteRecordClient([writer], "agent")
    first = asyncio.create_task(record_client.history("c000", 0))
    await writer.reading.wait()
    behind = asyncio.create_task(record_client.history("c001", 0))
    await asyncio.sleep(0)
    writer.goes_on.set()
    with pytest.raises(RecordError, match="hiccups"):
        await asyncio.wait_for(first, 5)
    assert await asyncio.wait_for(behind, 5) == History()
    assert await asyncio.wait_for(record_client.history("c002", 0), 5) == History()
    assert writer.asked == [[("c000", 0)], [("c001", 0)], [("c002", 0)]]


@virtual_time
async def test_a_row_that_cannot_be_recorded_is_the_records_trouble() -> None:
    """Else its debate alone would fail, and whatever is paid for after it would be lost."""
    record_client = RemoteRecordClient([_Writer()], "agent")
    record_client.put_reply("c000", {"case_id": "c000", "attempt": 0, "path": "a", "sample": 2**31})
    with pytest.raises(RecordError, match="ArrowInvalid"):
        await asyncio.wait_for(record_client.drained(), 5)
    with pytest.raises(RecordError, match="rows cannot be recorded"):
        record_client.put_reply("c001", {"case_id": "c001", "attempt": 0, "path": "a"})


class _RestartedPeer(Peer):
    """Dies after the first rows; refuses a verdict with notes of an earlier life."""

    def __init__(self) -> None:
        super().__init__("writer", "here")
        self.lived, self.ended_in = "first", list[str]()

    async def call(self, method: str, *args: Any) -> Any:
        if method == "history":
            return self.lived, msgspec.msgpack.encode([History(vectors={"e/t": b""}) for _ in args[0]])
        if method == "take_rows":
            incarnation, self.lived = self.lived, "second"
            return incarnation
        assert method == "commit"
        results = msgspec.msgpack.decode(args[0], type=list[DebateResult])
        self.ended_in += [debate_result.noted_in for debate_result in results]
        return [debate_result.noted_in in ("", self.lived) for debate_result in results]


@virtual_time
async def test_a_verdict_says_which_incarnation_of_the_writer_took_its_first_note() -> None:
    writer = _RestartedPeer()
    record_client = RemoteRecordClient([writer], "moderator")
    ends = [
        DebateResult(case_id=case_id, attempt=0, replies={}, answer="Yes", how="told") for case_id in ("c000", "c001")
    ]
    record_client.put_event("c000", 0, Event("round", "round/1"))
    await record_client.drained()
    record_client.put_event("c000", 0, Event("round", "round/2"))
    record_client.put_event("c001", 0, Event(ASKED, "say"))
    assert await asyncio.gather(*map(record_client.commit, ends)) == [False, True]
    record_client.put_event("c000", 0, Event("round", "round/1"))
    assert await record_client.commit(ends[0])
    assert writer.ended_in == ["first", "", "second"]


@virtual_time
async def test_embeddings_that_were_read_from_an_earlier_incarnation_may_be_lost_with_it() -> None:
    """It acknowledged them, perhaps not yet written, and a debate that has them does not note them again."""
    writer = _RestartedPeer()
    record_client = RemoteRecordClient([writer], "moderator")
    await record_client.history("c000", 0)
    writer.lived = "second"
    assert not await record_client.commit(DebateResult(case_id="c000", attempt=0, replies={}, answer="Yes", how="told"))
    assert writer.ended_in == ["first"]


@virtual_time
async def test_nothing_is_kept_of_a_debate_after_its_end_with_or_without_a_verdict() -> None:
    writer = _RestartedPeer()
    record_client = RemoteRecordClient([writer], "moderator")
    kept = record_client._connections[0]._noted_in
    record_client.put_event("c000", 0, Event("round", "round/1"))
    await record_client.history("c001", 0)
    await record_client.drained()
    assert set(kept) == {("c000", 0), ("c001", 0)}
    record_client.put_vectors("c000", 0, "e", [("t", b"")])
    for case_id in ("c000", "c001"):
        record_client.end(case_id, 0)
    record_client.put_event("c002", 0, Event("round", "round/1"))
    await record_client.drained()
    assert set(kept) == {("c002", 0)}
    late = asyncio.create_task(record_client.history("c003", 0))  # its debate is cancelled meanwhile
    await asyncio.sleep(0)
    late.cancel()
    for case_id in ("c002", "c003"):
        record_client.end(case_id, 0)
    await asyncio.sleep(1.0)
    assert not kept


class _PersistentPeer(Peer):
    """Goes on with a call also when nobody waits for it any more, as Ray does."""

    def __init__(self) -> None:
        super().__init__("writer", "here")
        self.claims = ReplyLeases(lambda key: False)
        self.calls: list[asyncio.Task[Any]] = []

    async def call(self, method: str, *args: Any) -> Any:
        self.calls.append(asyncio.create_task(self._serve(method, *args)))
        return await asyncio.shield(self.calls[-1])

    async def _serve(self, method: str, *args: Any) -> Any:
        if method == "release_lease":
            return self.claims.release(*args)
        mine = await self.claims.acquire(*args)
        await asyncio.sleep(0.05)
        return mine, msgspec.msgpack.encode(History())


@virtual_time
async def test_a_claim_that_is_granted_to_nobody_is_given_back() -> None:
    writer = _PersistentPeer()
    record_client = RemoteRecordClient([writer], "agent")
    cancelled = asyncio.create_task(record_client.acquire_lease("shared-x"))
    await asyncio.sleep(0.01)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert cancelled.cancelled()
    mine, _ = await asyncio.wait_for(record_client.acquire_lease("shared-x"), 5)
    assert mine
    await record_client.release_lease("shared-x")
    assert len(writer.calls) == 4
