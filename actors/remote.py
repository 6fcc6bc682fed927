"""The two ports of a debate when agents and the record's writers are other processes."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
from ray.exceptions import RayActorError

from moot.actors.envelopes import AskEnvelope, CancelEnvelope, Outgoing, decode_replies, encode
from moot.actors.failpoints import failpoint
from moot.actors.household import Service, service_of, services
from moot.actors.mailbox import Mailbox
from moot.actors.peers import Peer
from moot.actors.record.recorder import Closing, writer_of
from moot.actors.record.recovery import CaseKey, History
from moot.actors.record.rows import batch_of
from moot.actors.roles import Roles
from moot.protocols.messages import Answered, Ask, Event

ASK_SPACING_S = 0.004
CALLS_AT_ONCE = 2
ROW_SPACING_S = 0.1
ROWS_PER_BATCH = 128
COMMIT_SPACING_S = 0.2
HISTORY_SPACING_S = 0.2
_CLAIM_LEASE_S = 180.0
_GRACE_S = 10.0

EventRow = tuple[str, int, Event, float]
VectorRow = tuple[str, int, str, str, bytes]
Row = dict[str, Any] | EventRow | VectorRow
_EVENT_FIELDS = 4


def pack(batch: pa.RecordBatch) -> tuple[bytes, int]:
    """A batch as compressed bytes with their length before; prompts repeat, and small arguments cross cheaply."""
    raw = batch.serialize()
    return pa.compress(raw, "lz4_raw", asbytes=True), raw.size


def unpack(packed: bytes, size: int, schema: pa.Schema) -> pa.RecordBatch:
    """The batch that `pack` was given."""
    return pa.ipc.read_record_batch(pa.decompress(packed, size, "lz4_raw"), schema)


class RemoteScribe:
    """Sends rows to the record's writers in batches.

    Args:
        writers: the writer actors, in order.
        sender: `agent`, `judge` or `moderator`: names the failpoint that follows a sent batch.
    """

    def __init__(self, writers: Sequence[Peer], sender: str) -> None:
        self._sender = sender
        self._desks = [_Desk(writer, sender) for writer in writers]

    def _desk(self, case_id: str) -> _Desk:
        return self._desks[writer_of(case_id, len(self._desks))]

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        """See `ports.Scribe.put_reply`."""
        self._desk(case_id).rows.post(columns)

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        """See `ports.Scribe.put_event`."""
        self._desk(case_id).rows.post((case_id, attempt, event, time.time()))

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """See `ports.Scribe.put_vectors`."""
        post = self._desk(case_id).rows.post
        for text_hash, raw in vectors:
            post((case_id, attempt, encoder, text_hash, raw))

    async def commit(self, closing: Closing) -> bool:
        """See `ports.Scribe.commit`."""
        desk = self._desk(closing.case_id)
        durable: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        desk.closings.post((closing, durable))
        return await durable

    async def history(self, case_id: str, attempt: int) -> History:
        """See `ports.Scribe.history`."""
        return await self._desk(case_id).history((case_id, attempt))

    async def histories(self, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], History]:
        """What is recorded of several debates."""
        found = await asyncio.gather(*(self._desk(key[0]).history(key) for key in keys))
        return dict(zip(keys, found, strict=True))

    async def claim(self, key: str) -> bool:
        """See `ports.Scribe.claim`."""
        mine: bool = await self._desk(key).writer.call_until_done("claim", key, _CLAIM_LEASE_S)
        return mine

    async def settle(self, key: str) -> None:
        """See `ports.Scribe.settle`."""
        desk = self._desk(key)
        await desk.rows.drained()
        await desk.writer.call_until_done("settle", key)

    async def drained(self) -> None:
        """Wait until every row has reached its writer."""
        for desk in self._desks:
            await desk.rows.drained()


class _Desk:
    """The mailboxes of one process to one writer."""

    def __init__(self, writer: Peer, sender: str) -> None:
        self.writer, self._sender = writer, sender
        self.rows: Mailbox[Row] = Mailbox(self._send_rows, spacing_s=ROW_SPACING_S, most=ROWS_PER_BATCH)
        self.closings: Mailbox[tuple[Closing, asyncio.Future[bool]]] = Mailbox(
            self._send_closings, spacing_s=COMMIT_SPACING_S
        )
        self._questions: Mailbox[tuple[CaseKey, asyncio.Future[History]]] = Mailbox(
            self._ask_history, spacing_s=HISTORY_SPACING_S
        )
        self._commits: set[asyncio.Task[None]] = set()

    async def history(self, key: CaseKey) -> History:
        """What is recorded of a debate; questions that come close together share one reading of the journal."""
        answer: asyncio.Future[History] = asyncio.get_running_loop().create_future()
        self._questions.post((key, answer))
        return await answer

    async def _ask_history(self, batch: list[tuple[CaseKey, asyncio.Future[History]]]) -> None:
        try:
            await self.rows.drained()
            raw = await self.writer.call_until_done("history", [key for key, _ in batch])
            found = msgspec.msgpack.decode(raw, type=list[History])
        except Exception as error:
            _refuse(batch, error)
            raise
        for (_, answer), history in zip(batch, found, strict=True):
            if not answer.done():
                answer.set_result(history)

    async def _send_rows(self, batch: list[Row]) -> None:
        """Replies, events and embeddings share a call: what a call costs hardly depends on what it carries."""
        replies = [row for row in batch if isinstance(row, dict)]
        events = [row for row in batch if isinstance(row, tuple) and len(row) == _EVENT_FIELDS]
        vectors = [row for row in batch if isinstance(row, tuple) and len(row) != _EVENT_FIELDS]
        packed = pack(batch_of("replies", replies)) if replies else None
        await self.writer.call_until_done("take_rows", packed, msgspec.msgpack.encode((events, vectors)))
        if replies:
            failpoint(f"{self._sender}.sent_to_writer")

    async def _send_closings(self, batch: list[tuple[Closing, asyncio.Future[bool]]]) -> None:
        """A verdict leaves after everything that its debate has noted; waiting for it holds up no other batch."""
        try:
            await self.rows.drained()
        except Exception as error:
            _refuse(batch, error)
            raise
        task = asyncio.create_task(self._commit(batch))
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)

    async def _commit(self, batch: list[tuple[Closing, asyncio.Future[bool]]]) -> None:
        try:
            raw = msgspec.msgpack.encode([closing for closing, _ in batch])
            accepted = await self.writer.call_until_done("commit", raw)
        except Exception as error:
            _refuse(batch, error)
            return
        for (_, durable), ok in zip(batch, accepted, strict=True):
            if not durable.done():
                durable.set_result(ok)


def _refuse(batch: Sequence[tuple[Any, asyncio.Future[Any]]], error: Exception) -> None:
    """The writer cannot serve a batch: whoever waits for it gets the error."""
    for _, waiting in batch:
        if not waiting.done():
            waiting.set_exception(error)


class RemoteCrew:
    """Agents and judges in their own actors, reached through mailboxes.

    Args:
        roles: the run's bindings.
        agents: the actors of each service; a case always goes to the same one of them.
        scribe: asked for what a lost agent had already recorded.
        reply_to: the name under which this process takes replies.
    """

    def __init__(self, roles: Roles, agents: dict[Service, list[Peer]], scribe: RemoteScribe, reply_to: str) -> None:
        self._roles, self._scribe, self._reply_to = roles, scribe, reply_to
        # A restarted moderator has the name of the one before, and agents may still answer that one's asks.
        self._numbers = itertools.count(secrets.randbits(32) << 24)
        self._waiting: dict[int, asyncio.Future[Answered]] = {}
        self._lines = {service: [_Line(peer, self) for peer in peers] for service, peers in agents.items()}
        if set(self._lines) != set(services(roles)):
            raise ValueError("every service of the run needs an agent")

    async def answer(self, ask: Ask) -> Answered:
        """See `ports.Crew.answer`."""
        lines = self._lines[service_of(ask.role, self._roles.binding(ask.role))]
        line = lines[writer_of(ask.case_id, len(lines))]
        number = next(self._numbers)
        reply: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        line.post(number, ask)
        try:
            async with asyncio.timeout(ask.seconds_left + _GRACE_S):
                return await reply
        except TimeoutError:
            line.cancel(number)
            return self._unanswered(ask)
        except asyncio.CancelledError:
            line.cancel(number)
            raise
        finally:
            line.done(number)
            self._waiting.pop(number, None)

    def take_replies(self, blob: bytes) -> None:
        """A batch of replies came in; those nobody waits for are dropped."""
        for envelope in decode_replies(blob):
            self.resolve(envelope.number, envelope.answered)

    def resolve(self, number: int, answered: Answered) -> None:
        """The reply to an ask is here."""
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answered)

    def fail(self, number: int, error: BaseException) -> None:
        """No reply to that ask can come any more."""
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    @property
    def reply_to(self) -> str:
        """The name under which this process takes replies."""
        return self._reply_to

    def _unanswered(self, ask: Ask) -> Answered:
        """The agent itself did not answer in time: a failure like any other, written down here."""
        message = f"the agent did not answer within {ask.seconds_left + _GRACE_S:g} s"
        answered = Answered(
            path=ask.path,
            reply_id=f"unanswered-{ask.step_key}",
            model=self._roles.binding(ask.role).model,
            outcome="failed",
            failure="timeout",
            error=message,
        )
        self._scribe.put_reply(
            ask.case_id,
            {
                "case_id": ask.case_id,
                "attempt": ask.attempt,
                "path": ask.path,
                "role": ask.role,
                "model": answered.model,
                "template": ask.template,
                "fingerprint": ask.fingerprint,
                "sample": ask.sample,
                "outcome": "failed",
                "failure": "timeout",
                "error": message,
                "reply_id": answered.reply_id,
                "at": time.time(),
            },
        )
        return answered

    async def recover(self, open_asks: dict[int, Ask]) -> list[int]:
        """After an agent was lost: take what is recorded of its open asks; returns the numbers to ask again."""
        keys = list({(ask.case_id, ask.attempt) for ask in open_asks.values()})
        histories = await self._scribe.histories(keys)
        again = []
        for number, ask in open_asks.items():
            recorded = {reply.path: reply for reply in histories[ask.case_id, ask.attempt].replies}.get(ask.path)
            if recorded is not None and recorded.fingerprint == ask.fingerprint:
                self.resolve(number, recorded.answered)
            else:
                again.append(number)
                self._scribe.put_event(ask.case_id, ask.attempt, Event("asked", ask.path))
        return again


class _Line:
    """The mailbox to one agent actor, with the asks that it has not answered yet."""

    def __init__(self, peer: Peer, crew: RemoteCrew) -> None:
        self._peer, self._crew = peer, crew
        self._mailbox: Mailbox[Outgoing] = Mailbox(self._send, spacing_s=ASK_SPACING_S, most=64, at_once=CALLS_AT_ONCE)
        self._open: dict[int, Ask] = {}
        self._watch: asyncio.Task[None] | None = None

    def post(self, number: int, ask: Ask) -> None:
        self._open[number] = ask
        if self._watch is None:
            self._watch = asyncio.create_task(self._peer.watch(self._lost))
            self._watch.add_done_callback(self._unwatched)
        self._mailbox.post(AskEnvelope(number, ask))

    def cancel(self, number: int) -> None:
        if number in self._open:
            self._mailbox.post(CancelEnvelope(number))

    def done(self, number: int) -> None:
        self._open.pop(number, None)

    async def _send(self, batch: list[Outgoing]) -> None:
        try:
            await self._peer.call("deliver", self._crew.reply_to, encode(batch))
        except RayActorError:
            await self._peer.back()  # what was in the batch is open still: `_lost` asks it again

    def _unwatched(self, watch: asyncio.Task[None]) -> None:
        """The agent is gone for good: nobody may wait for it any longer."""
        if not watch.cancelled() and (error := watch.exception()) is not None:
            for number in self._open:
                self._crew.fail(number, error)

    async def _lost(self) -> None:
        for number in await self._crew.recover(dict(self._open)):
            if number in self._open:
                self._mailbox.post(AskEnvelope(number, self._open[number]))
