"""Trial servers: a trial call goes to every server of a pool at once; other models are one server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

import structlog

from moot.actors.models.interface import Model, ModelError, ModelReply, ReplySchema, StreamingModel
from moot.actors.models.refusals import refuses_system
from moot.actors.models.retry import RETRIED_KINDS, RetryPolicy, call_with_retries
from moot.actors.models.server_pool import ServerPool, servers_of
from moot.actors.models.trial_replies import TrialReplies
from moot.actors.telemetry.log import warn_when_slow
from moot.protocols.errors import ModelUnavailable
from moot.protocols.messages import Decoding, Message, Usage

_log = structlog.get_logger(__name__)

_WAITING = (
    "waiting for the first reply of a model's server: it may be loading its weights, or hang; "
    "look at the server, or lower the role's `timeout_s`"
)


@dataclass(frozen=True, slots=True)
class TrialFailure:
    """Failed trial call.

    Attributes:
        server: name of the server; of a model that is no pool, its own.
        error: why it failed.
    """

    server: str
    error: ModelError | ModelUnavailable

    @property
    def kind(self) -> str:
        """Kind of failure, see `ModelError`; empty if no reply came in time."""
        return self.error.kind if isinstance(self.error, ModelError) else ""

    @property
    def message(self) -> str:
        """The server's message."""
        return self.error.message if isinstance(self.error, ModelError) else str(self.error)

    @property
    def is_answer(self) -> bool:
        """Whether the server refused the call; else it may accept it later."""
        return isinstance(self.error, ModelError) and self.error.kind not in RETRIED_KINDS

    @property
    def unavailable(self) -> ModelUnavailable:
        """The failure as an error of the run."""
        return ModelUnavailable(f"{self.server}: {self.message}") if isinstance(self.error, ModelError) else self.error


class TrialServers:
    """Servers of one model that trial calls are made to.

    A server of a pool that does not answer is left out of further calls, while another one answers.

    Args:
        model: the pool, or a model of another kind.
        timeout_s: timeout of a call at one server, with its retries.
        retries: for failures that may pass.
        step_key: of every call.
    """

    def __init__(self, model: Model, *, timeout_s: float, retries: RetryPolicy, step_key: str) -> None:
        self._servers = list(servers_of(model))
        self._all = model.servers if isinstance(model, ServerPool) else ()
        self._timeout_s, self._retries, self._step_key = timeout_s, retries, step_key

    @property
    def count(self) -> int:
        """Number of servers that a call goes to."""
        return len(self._servers)

    @property
    def untried(self) -> tuple[str, ...]:
        """Base URLs of the pool's servers that did not answer."""
        return tuple(each.base_url for each in self._all if each not in self._servers)

    async def call(
        self, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None, *, streamed: bool
    ) -> TrialReplies | TrialFailure:
        """Replies of all servers that answer.

        Returns:
            One failure if a server refuses the call, or if none answers.
        """
        calls = [self._called(server, messages, decoding, schema, streamed=streamed) for server in self._servers]
        ended = dict(zip(self._servers, await asyncio.gather(*calls), strict=True))
        failures = {server: each for server, each in ended.items() if isinstance(each, TrialFailure)}
        if refused := next((each for each in failures.values() if each.is_answer), None):
            return refused
        if len(failures) == len(ended):
            return next(iter(failures.values()))
        for server, failure in failures.items():
            self._servers.remove(server)
            _log.warning("a server does not answer the trial call", server=server.name, why=failure.message)
        return {server.name: each for server, each in ended.items() if isinstance(each, ModelReply)}

    async def _called(
        self,
        server: Model,
        messages: Sequence[Message],
        decoding: Decoding,
        schema: ReplySchema | None,
        *,
        streamed: bool,
    ) -> ModelReply | TrialFailure:
        ask = self._streamed if streamed else self._complete
        limit_s = self._timeout_s
        try:
            with warn_when_slow(_WAITING, model=server.name, at_most_s=limit_s):
                async with asyncio.timeout(limit_s):
                    return await call_with_retries(self._retries, lambda: ask(server, messages, decoding, schema))
        except TimeoutError:
            return TrialFailure(server.name, ModelUnavailable(f"{server.name} did not answer within {limit_s:g} s"))
        except (ModelError, ModelUnavailable) as error:
            return TrialFailure(server.name, error)

    async def _complete(
        self, server: Model, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None
    ) -> ModelReply:
        try:
            return await server.complete(messages, decoding, step_key=self._step_key, schema=schema)
        except ModelError as error:
            if error.retry_after_s is not None and error.retry_after_s > self._retries.total_s:
                raise ModelUnavailable(f"{server.name}: {error.message}") from None
            # llama.cpp answers 500 when the chat template refuses: a retry cannot help
            if error.kind == "server" and refuses_system(error.message):
                raise ModelError("request", error.message) from None
            raise

    async def _streamed(
        self, server: Model, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None
    ) -> ModelReply:
        """Text of a streamed reply."""
        model = cast(StreamingModel, server)
        text, finish_reason = "", ""
        async with aclosing(model.stream(messages, decoding, step_key=self._step_key, schema=schema)) as pieces:
            async for piece in pieces:
                text += piece.text
                finish_reason = piece.finish_reason or finish_reason
        return ModelReply(text, finish_reason, Usage())
