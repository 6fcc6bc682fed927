"""Agent pool of remote actors: sends each ask to its agent or judge actor, and repeats it after a loss."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Sequence
from uuid import uuid4

from moot.actors.agent.roles import Roles
from moot.actors.debate.context_factory import Service, service_of, services
from moot.actors.record.debate_result import writer_of
from moot.actors.record.schema import ASKED
from moot.actors.remote.agent_connection import AgentConnection
from moot.actors.remote.envelopes import (
    AskEnvelope,
    CancelEnvelope,
    MessageBatch,
    ReplyEnvelope,
    decode_replies,
    encode,
)
from moot.actors.remote.peers import CrashLoopGuard, Peer, PeerLost
from moot.actors.remote.record_client import RemoteRecordClient
from moot.protocols.errors import ActorGone, MootError
from moot.protocols.messages import Ask, AskResult, Event

_GRACE_S = 10.0
_DOUBTS = 2
_TOGETHER_S = 0.05
"""Seconds within which all calls that one death ends have failed, so that one recovery serves them."""


class RemoteAgentPool:
    """Agent pool over actors, with one connection to each.

    Args:
        roles: bindings of the run.
        agents: actors of each service; a case always goes to the same one.
        record_client: reads what a lost agent had already recorded.
        name: this process's name. Agents reply to the name and an incarnation: a restarted moderator must not get
            replies to the asks of its previous incarnation.
    """

    def __init__(
        self, roles: Roles, agents: dict[Service, list[Peer]], record_client: RemoteRecordClient, name: str
    ) -> None:
        self._roles, self._record_client = roles, record_client
        self._numbers = itertools.count()
        self.sender = f"{name}:{uuid4().hex}"
        self.draining = False
        self._waiting: dict[int, asyncio.Future[AskResult]] = {}
        self._connections = {service: [_AgentClient(peer, self) for peer in peers] for service, peers in agents.items()}
        if set(self._connections) != set(services(roles)):
            raise ValueError("every service of the run needs an agent")

    async def answer(self, ask: Ask) -> AskResult:
        """See `AgentPool.answer`."""
        connections = self._connections[service_of(ask.role, self._roles.binding(ask.role))]
        connection = connections[writer_of(ask.case_id, len(connections))]
        number = next(self._numbers)
        reply: asyncio.Future[AskResult] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        connection.post(number, ask)
        try:
            await asyncio.wait([reply], timeout=ask.seconds_left + _GRACE_S)
            # The agent's deadline is paused while the ask waits for the limiter. An agent without the ask may just have
            # been restarted, with the ask on its way.
            doubts = 0
            while not reply.done() and doubts < _DOUBTS:
                doubts = 0 if await connection.has_ask(number) else doubts + 1
                await asyncio.wait([reply], timeout=_GRACE_S)
            if reply.done():
                return reply.result()
            connection.cancel(number)
            return self._unanswered(ask)
        except asyncio.CancelledError:
            connection.cancel(number)
            raise
        finally:
            connection.done(number)
            self._waiting.pop(number, None)

    async def drain(self) -> None:
        """See `AgentPool.drain`. An agent restarted after this gets no asks."""
        self.draining = True
        drains = (client.drain() for connections in self._connections.values() for client in connections)
        await asyncio.gather(*drains, return_exceptions=True)  # an unreachable agent is dead, or about to be

    async def close(self) -> None:
        """Stop watching the agents, before they are taken down. No ask may follow."""
        await asyncio.gather(*(client.close() for connections in self._connections.values() for client in connections))

    def resolve(self, number: int, answered: AskResult) -> None:
        """Resolve an ask with its reply."""
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answered)

    def fail(self, number: int, error: BaseException) -> None:
        """Fail an ask that can no longer get a reply."""
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def batch_sizes(self) -> Counter[int]:
        """Batch sizes of asks: number of calls by how many asks were sent together."""
        return sum(
            (client.connection.batch_sizes for connections in self._connections.values() for client in connections),
            Counter(),
        )

    def _unanswered(self, ask: Ask) -> AskResult:
        """Timeout of an agent that did not answer itself: recorded here, a failure like any other."""
        message = f"the agent did not answer within {ask.seconds_left + _GRACE_S:g} s"
        answered = AskResult(
            path=ask.path,
            reply_id=f"unanswered-{ask.step_key}",
            model=self._roles.binding(ask.role).model,
            outcome="failed",
            failure="timeout",
            error=message,
        )
        self._record_client.put_reply(
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
                "unconfirmed_attempts": 1,
                "at": time.time(),
            },
        )
        return answered

    async def reconcile(self, open_asks: dict[int, Ask]) -> dict[int, Ask]:
        """Reconcile open asks with the record after an agent was lost; returns those to send again, by number."""
        keys = list({(ask.case_id, ask.attempt) for ask in open_asks.values()})
        histories = await self._record_client.histories(keys)
        again = {}
        for number, ask in open_asks.items():
            history = histories[ask.case_id, ask.attempt]
            recorded = {reply.path: reply for reply in history.replies}.get(ask.path)
            if recorded is not None and recorded.fingerprint in ask.fingerprints:
                self.resolve(number, recorded.answered)
            else:
                again[number] = history.resume(ask)
                self._record_client.put_event(ask.case_id, ask.attempt, Event(ASKED, ask.path))
        return again


class _AgentClient:
    """Connection to one agent actor, with its asks in flight."""

    def __init__(self, peer: Peer, pool: RemoteAgentPool) -> None:
        self._peer, self._pool = peer, pool
        self._open: dict[int, Ask] = {}
        self.connection = AgentConnection(pool.sender, self._exchange, self._arrived, self._open.keys(), self._broken)
        self._watch: asyncio.Task[None] | None = None
        self._losses = self._recovered = 0
        self._recovering = asyncio.Lock()
        self._crash_guard = CrashLoopGuard(peer.name)

    def post(self, number: int, ask: Ask) -> None:
        self._open[number] = ask
        if self._watch is None:
            self._watch = asyncio.create_task(self._peer.watch(self._lost))
            self._watch.add_done_callback(self._unwatched)
        self.connection.post(AskEnvelope(number, ask))

    def cancel(self, number: int) -> None:
        if number in self._open:
            self.connection.post(CancelEnvelope(number))

    def done(self, number: int) -> None:
        self._open.pop(number, None)

    async def drain(self) -> None:
        """Start no further calls at the agent."""
        await self._peer.call("drain")

    async def close(self) -> None:
        """Stop watching the agent."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    async def has_ask(self, number: int) -> bool:
        """Whether the agent still has an overdue ask, or is about to get it. An agent that does not reply hangs: it is
        killed (see `watchdog`), and its asks are sent again."""
        if self._recovering.locked() or number in self.connection.queued():
            return True
        try:
            async with asyncio.timeout(_GRACE_S):
                return bool(await self._peer.call("has_ask", self._pool.sender, number))
        except (PeerLost, TimeoutError):
            return True  # it is sent again when the agent is back

    async def _exchange(self, batch: MessageBatch) -> Sequence[ReplyEnvelope] | None:
        try:
            return decode_replies(await self._peer.call("exchange", encode(batch)))
        except PeerLost:
            await self._peer.wait_until_back()
            self.connection.call_lost()
            await self._lost()
            return None

    def _arrived(self, reply: ReplyEnvelope) -> None:
        self._crash_guard.progressed()
        if reply.answered is None:
            self._pool.fail(reply.number, RuntimeError(f"{self._peer.name} raised {reply.raised}"))
        else:
            self._pool.resolve(reply.number, reply.answered)

    def _broken(self, error: Exception) -> None:
        """Fail every open ask, because the agent is gone for good; no debate is blamed for the error."""
        lost = error if isinstance(error, MootError) else ActorGone(f"no line to {self._peer.name}: {error!r}")
        for number in self._open:
            self._pool.fail(number, lost)

    def _unwatched(self, watch: asyncio.Task[None]) -> None:
        if not watch.cancelled() and isinstance(error := watch.exception(), Exception):
            self._watch = None
            self._broken(error)

    async def _lost(self) -> None:
        """Recover every open ask after a loss; called by the watch and for each lost call."""
        self._losses += 1
        mine = self._losses
        async with self._recovering:
            await asyncio.sleep(_TOGETHER_S)
            if self._recovered < mine:
                seen = self._losses
                await self._recover()
                self._recovered = seen

    async def _recover(self) -> None:
        asked = dict(self._open)
        again = await self._pool.reconcile(asked)
        if not asked or len(again) < len(asked):
            self._crash_guard.progressed()
        self._crash_guard.record_death(await self._peer.incarnation())
        for number, ask in again.items():
            if number in self._open and number not in self.connection.queued() and not self._pool.draining:
                self.connection.post(AskEnvelope(number, ask))
