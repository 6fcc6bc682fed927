"""Server pool: client-side load balancing over several servers of one model, by consistent hashing with bounded loads.

A debate's calls go to one server while that one has room: they share their beginning, which a server that has just
computed it need not compute again. Which server depends on the debate and the servers' addresses alone, so that agents
in different processes choose the same.

The trial calls find what all servers have (`moot.actors.models.probe`). Each reply is compared with that: a server that
gives no log-probabilities gets no calls that need them while another server gives them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import structlog

from moot.actors.models.compatible import CompatibleModel
from moot.actors.models.interface import Model, ModelError, ModelReply, ReplySchema, StreamPiece
from moot.actors.models.listed_model import listed_differences
from moot.actors.models.refusals import names_logprobs
from moot.actors.models.resolve import pool_name
from moot.actors.models.retry import RETRIED_KINDS
from moot.actors.models.token_logprobs import logprobs_given
from moot.protocols.errors import ModelUnavailable
from moot.protocols.messages import Decoding, Message, debate_of
from moot.protocols.seeds import stable_digest

_log = structlog.get_logger(__name__)

LEFT_OUT_S = 10.0
"""Seconds for which a server whose connection failed gets no calls, while another one works."""

HUNG_S = 30.0
"""Seconds without a reply after which a server's health is checked, and after which an abandoned call counts against
it."""

LACKING_S = 60.0
"""Seconds for which a server that gave no log-probabilities gets no calls that need them, while another one gives
them."""

FULL_S = 1.0
"""Seconds for which a server that refused a call for its rate gets none, while another one has room; unless it states
how long."""

_MOST_LOAD = 1.25
"""Calls in flight at a server over the mean of those available, rounded up: with more it has no room."""

_ALWAYS_ROOM = 8
"""Calls in flight for which a server has room whatever the mean: the parallel asks of a case share their beginning."""

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
        untried: whether it did not answer the trial calls, and has not replied since.
        full_until: time until which it has no room, as it refused a call for its rate, by the pool's clock.
        heard_at: time of the last data from it, by the pool's clock.
        gives_logprobs: whether its last reply with requested log-probabilities had them; None before one.
        lacking_until: time until which it gets no calls that need log-probabilities, by the pool's clock.
        served_model: the model's identity in its last reply; empty before one.
    """

    model: CompatibleModel
    in_flight: int = 0
    out_until: float = 0.0
    untried: bool = False
    full_until: float = 0.0
    heard_at: float = float("-inf")
    gives_logprobs: bool | None = None
    lacking_until: float = 0.0
    served_model: str = ""

    def takes_calls(self, now: float) -> bool:
        """Whether it may get calls; an ejected one gets a single trial call, and more when that succeeds."""
        return self.out_until == 0.0 or (self.out_until <= now and not self.in_flight)

    def fits(self, now: float, *, logprobs: bool) -> bool:
        """Whether its replies are known to have what a call needs; a lacking one gets a single trial call, too."""
        lacking = logprobs and self.gives_logprobs is False
        return not lacking or (self.lacking_until <= now and not self.in_flight)


class ServerPool:
    """Pool of equal servers of one model; one instance serves any number of calls at once.

    A failed call is not retried here: the caller's retry goes to another server.

    Args:
        base_urls: of the servers, two or more.
        model: the model's name, equal on each.
        api_key_env: name of the environment variable with their key; None sends no key.
        untried: servers that did not answer the trial calls: each gets a single call until it has replied.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        base_urls: Sequence[str],
        model: str,
        *,
        api_key_env: str | None = None,
        untried: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members = [_Member(CompatibleModel(url, model, api_key_env=api_key_env)) for url in base_urls]
        self._clock = clock
        for member in self._members:
            if member.model.base_url in untried:
                member.untried, member.out_until = True, clock()
        self.name = pool_name(base_urls, model)
        self.capabilities = self._members[0].model.capabilities

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        """One request to one of the servers.

        Raises:
            ModelError: see `CompatibleModel.complete`.
        """
        with self._chosen(step_key, decoding) as member:
            call = member.model.complete(messages, decoding, step_key=step_key, schema=schema)
            reply = await self._unless_hung(member, call)
        if (given := logprobs_given(reply, decoding)) is not None:
            self._note_logprobs(member, given=given)
        self._note_model(member, reply.served_model)
        return replace(reply, server=member.model.base_url)

    async def stream(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> AsyncGenerator[StreamPiece, None]:
        """One request to one of the servers, with a streamed reply.

        Raises:
            ModelError: while iterating.
        """
        with self._chosen(step_key, decoding) as member:
            listed: list[bool] = []
            try:
                async with aclosing(
                    member.model.stream(messages, decoding, step_key=step_key, schema=schema)
                ) as pieces:
                    async for piece in pieces:
                        member.heard_at = self._clock()
                        if (given := logprobs_given(piece, decoding)) is not None:
                            listed.append(given)
                        self._note_model(member, piece.served_model)
                        yield replace(piece, server=member.model.base_url)
            finally:
                if listed:
                    self._note_logprobs(member, given=all(listed))

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
    def _chosen(self, step_key: str, decoding: Decoding) -> Iterator[_Member]:
        """The debate's first available server with room that gives what the call needs; without any, one that does not
        give it, then the one to be retried first."""
        now, logprobs = self._clock(), decoding.top_logprobs is not None
        alive = [member for member in self._members if member.takes_calls(now)]
        if alive:
            fitting = [member for member in alive if member.fits(now, logprobs=logprobs)] or alive
            member = _first_with_room(fitting, debate_of(step_key), now)
        else:
            member = min(self._members, key=lambda each: each.out_until)
        member.in_flight += 1
        try:
            yield member
            member.out_until, member.untried, member.heard_at = 0.0, False, self._clock()
        except ModelError as error:
            if error.kind == "rate_limited":
                member.full_until = self._clock() + (error.retry_after_s or FULL_S)
                if any(other.full_until <= now and other.takes_calls(now) for other in self._members):
                    error.retry_after_s = None  # the wait is one server's, and another takes the next call
            if error.kind in _DEAD or member.untried:
                self._leave_out(member, error.message)
            if self._is_own_fault(member, error, logprobs=logprobs):
                error.kind, error.message = "server", f"{member.model.base_url}: {error.message}"
            raise
        except asyncio.CancelledError:
            waited_s = self._clock() - max(now, member.heard_at)
            if waited_s >= HUNG_S:
                self._leave_out(member, f"nothing came from it for {waited_s:.0f} s")
            raise
        finally:
            member.in_flight -= 1

    def _is_own_fault(self, member: _Member, error: ModelError, *, logprobs: bool) -> bool:
        """Whether a call should be tried again at another server, although its failure is not one that is retried.

        So it is where the server was never tried, while another one was, or refuses the log-probabilities that it used
        to give.
        """
        if error.kind in RETRIED_KINDS:
            return False
        if logprobs and error.kind == "request" and names_logprobs(error.message):
            self._note_logprobs(member, given=False)
            return any(other.gives_logprobs for other in self._members)
        return member.untried and not all(each.untried for each in self._members)

    def _leave_out(self, member: _Member, why: str) -> None:
        if member.out_until == 0.0:
            _log.warning("a server is left out for a while", server=member.model.base_url, why=why)
        member.out_until = self._clock() + LEFT_OUT_S

    def _note_logprobs(self, member: _Member, *, given: bool) -> None:
        if not given:
            member.lacking_until = self._clock() + LACKING_S
        if not given and member.gives_logprobs is not False:
            _log.warning(
                "a server gives no log-probabilities: its replies are used without them, and calls that need them go "
                "to other servers, as far as these give them",
                server=member.model.base_url,
            )
        member.gives_logprobs = given

    def _note_model(self, member: _Member, served: str) -> None:
        if served and member.served_model not in ("", served):
            _log.warning(
                "a server replies as another model than before",
                server=member.model.base_url,
                before=member.served_model,
                now=served,
            )
        member.served_model = served or member.served_model

    @property
    def servers(self) -> tuple[CompatibleModel, ...]:
        """Clients of its servers."""
        return tuple(member.model for member in self._members)

    @property
    def available(self) -> tuple[CompatibleModel, ...]:
        """Clients of the servers that are not ejected."""
        return tuple(member.model for member in self._members if member.out_until == 0.0)

    async def check(self) -> None:
        """Health check: request each server's list of models at once; those that do not answer are ejected.

        What the lists state differently is logged.

        Raises:
            ModelUnavailable: none of them answers.
            MissingKey: the key's environment variable is not set.
        """
        failures = await asyncio.gather(*map(self._failure, self._members))
        answering = [member.model for member, why in zip(self._members, failures, strict=True) if not why]
        if not answering:
            raise ModelUnavailable(failures[-1])
        for difference in listed_differences({model.base_url: model.listed for model in answering}):
            _log.warning("the servers of a pool differ", model=self.name, difference=difference)
        dialects = {model.capabilities.dialect for model in answering}
        dialect = dialects.pop() if len(dialects) == 1 else "portable"
        self.capabilities = replace(self.capabilities, dialect=dialect)

    async def _failure(self, member: _Member) -> str:
        """Why a server does not answer; it is then ejected. Empty for one that answers."""
        try:
            await member.model.check()
        except ModelUnavailable as error:
            member.out_until = self._clock() + LEFT_OUT_S
            _log.warning("a server does not answer", server=member.model.base_url, why=str(error))
            return str(error)
        return ""

    async def close(self) -> None:
        """Close the connections of the running event loop; a later call opens new ones."""
        for member in self._members:
            await member.model.close()


def _first_with_room(members: Sequence[_Member], debate: str, now: float) -> _Member:
    """First member with room, in the debate's order of them (rendezvous hashing); see `_MOST_LOAD`.

    One that refused a call counts only where all of them did: it leaves its share of the load to the others.
    """
    willing = [member for member in members if member.full_until <= now] or members
    mean = (sum(member.in_flight for member in willing) + 1) / len(willing)
    most = max(_ALWAYS_ROOM, math.ceil(_MOST_LOAD * mean))
    free = [member for member in willing if member.in_flight < most]  # never empty: some are below the mean
    return min(free, key=lambda member: stable_digest(debate, member.model.base_url))


def servers_of(model: Model) -> tuple[Model, ...]:
    """The servers behind a model that are tried before a run: the model itself, or those of a pool that are not
    ejected, or all of them where each is: then their own failures say why."""
    return (model.available or model.servers) if isinstance(model, ServerPool) else (model,)


async def _lists_models(model: CompatibleModel) -> bool:
    try:
        async with asyncio.timeout(_CHECK_S):
            await model.check()
    except (ModelUnavailable, TimeoutError):
        return False
    return True
