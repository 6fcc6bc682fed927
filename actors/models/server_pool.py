"""Server pool: client-side load balancing over several servers of one model; calls go to the least busy live one."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import structlog

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import ModelError, ModelReply, StreamPiece
from moot.actors.models.reply_schema import ReplySchema
from moot.actors.models.resolve import pool_name
from moot.protocols.errors import ModelUnavailable
from moot.protocols.messages import Decoding, Message

_log = structlog.get_logger(__name__)

LEFT_OUT_S = 10.0
"""Seconds for which a server whose connection failed gets no calls, while another one works."""

HUNG_S = 30.0
"""Seconds without a reply after which a server's health is checked, and after which an abandoned call counts against
it."""

_CHECK_S = 5.0
"""Seconds within which a server that generates a long reply still lists its models."""

_DEAD = frozenset({"connection", "server"})
"""Kinds of failure after which a server is ejected."""


@dataclass(slots=True)
class _Member:
    """Member of a server pool.

    Attributes:
        model: its client.
        in_flight: calls in flight.
        out_until: time until which it is ejected, by the pool's clock; 0 since its last call succeeded.
        turn: number of its latest call among all of the pool.
        heard_at: time of the last data from it, by the pool's clock.
    """

    model: CompatibleModel
    in_flight: int = 0
    out_until: float = 0.0
    turn: int = 0
    heard_at: float = float("-inf")

    def takes_calls(self, now: float) -> bool:
        """Whether it may get calls; an ejected one gets a single trial call, and more when that succeeds."""
        return self.out_until == 0.0 or (self.out_until <= now and not self.in_flight)


class ServerPool:
    """Pool of equal servers of one model; one instance serves any number of calls at once.

    A failed call is not retried here: the caller's retry goes to another server.

    Args:
        base_urls: of the servers, two or more.
        model: the model's name, equal on each.
        api_key_env: name of the environment variable with their key; None sends no key.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        base_urls: Sequence[str],
        model: str,
        *,
        api_key_env: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members = [_Member(CompatibleModel(url, model, api_key_env=api_key_env)) for url in base_urls]
        self._clock = clock
        self._turns = itertools.count(1)
        self.name = pool_name(base_urls, model)
        self.capabilities = self._members[0].model.capabilities

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        """One request to one of the servers.

        Raises:
            ModelError: see `CompatibleModel.complete`.
        """
        with self._chosen() as member:
            call = member.model.complete(messages, decoding, step_key=step_key, schema=schema)
            return await self._unless_hung(member, call)

    async def stream(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> AsyncGenerator[StreamPiece, None]:
        """One request to one of the servers, with a streamed reply.

        Raises:
            ModelError: while iterating.
        """
        with self._chosen() as member:
            async with aclosing(member.model.stream(messages, decoding, step_key=step_key, schema=schema)) as pieces:
                async for piece in pieces:
                    member.heard_at = self._clock()
                    yield piece

    async def _unless_hung(self, member: _Member, call: Coroutine[Any, Any, ModelReply]) -> ModelReply:
        """Hang detection: a call is cancelled when its server stops answering and another server is available.

        A long reply is no hang: a server that still lists its models is waited for.

        Raises:
            ModelError: `connection` for a hang; else see `CompatibleModel.complete`.
        """
        asked = asyncio.ensure_future(call)
        try:
            while not (await asyncio.wait({asked}, timeout=HUNG_S))[0]:
                others = [other for other in self._members if other is not member and other.out_until == 0.0]
                if others and not await _lists_models(member.model) and not asked.done():
                    raise ModelError(
                        "connection", f"nothing comes from {member.model.base_url}, its list of models neither"
                    )
            return asked.result()
        finally:
            asked.cancel()

    @contextmanager
    def _chosen(self) -> Iterator[_Member]:
        """Least busy available server, round robin on ties; without any, the one to be retried first."""
        now = self._clock()
        alive = [member for member in self._members if member.takes_calls(now)]
        if alive:
            member = min(alive, key=lambda each: (each.in_flight, each.turn))
        else:
            member = min(self._members, key=lambda each: each.out_until)
        member.turn = next(self._turns)
        member.in_flight += 1
        try:
            yield member
            member.out_until, member.heard_at = 0.0, self._clock()
        except ModelError as error:
            if error.kind in _DEAD:
                self._leave_out(member, error.message)
            raise
        except asyncio.CancelledError:
            waited_s = self._clock() - max(now, member.heard_at)
            if waited_s >= HUNG_S:
                self._leave_out(member, f"nothing came from it for {waited_s:.0f} s")
            raise
        finally:
            member.in_flight -= 1

    def _leave_out(self, member: _Member, why: str) -> None:
        if member.out_until == 0.0:
            _log.warning("a server is left out for a while", server=member.model.base_url, why=why)
        member.out_until = self._clock() + LEFT_OUT_S

    async def check(self) -> None:
        """Health check: request each server's list of models; those that do not answer are ejected.

        Raises:
            ModelUnavailable: none of them answers.
            MissingKey: the key's environment variable is not set.
        """
        dialects, why = set(), ""
        for member in self._members:
            try:
                await member.model.check()
                dialects.add(member.model.capabilities.dialect)
            except ModelUnavailable as error:
                why = str(error)
                member.out_until = self._clock() + LEFT_OUT_S
                _log.warning("a server does not answer", server=member.model.base_url, why=why)
        if not dialects:
            raise ModelUnavailable(why)
        dialect = dialects.pop() if len(dialects) == 1 else "portable"
        self.capabilities = replace(self.capabilities, dialect=dialect)

    async def close(self) -> None:
        """Close the connections of the running event loop; a later call opens new ones."""
        for member in self._members:
            await member.model.close()


async def _lists_models(model: CompatibleModel) -> bool:
    try:
        async with asyncio.timeout(_CHECK_S):
            await model.check()
    except (ModelUnavailable, TimeoutError):
        return False
    return True
