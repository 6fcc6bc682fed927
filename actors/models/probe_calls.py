"""Probe calls: trial calls before a run, each made like those of the run, and their purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Literal, cast

import msgspec
import structlog
from pydantic import BaseModel

from moot.actors.models.interface import Model, ModelError, ModelReply, StreamingModel
from moot.actors.models.model_profile import ConstraintMode, ModelProfile
from moot.actors.models.refusals import (
    is_out_of_tokens,
    most_alternatives,
    named_settings,
    names_logprobs,
    names_response_format,
    refuses_response_format,
    refuses_system,
)
from moot.actors.models.reply_schema import ReplySchema
from moot.actors.models.responses_wire import only_over_responses
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.protocols.errors import ConfigError, ModelUnavailable
from moot.protocols.messages import Decoding, Message, Usage

PROBE_RETRIES = RetryPolicy(max_attempts=4, total_s=20.0, cap_s=2.0, retry_after_cap_s=5.0)
"""Retry policy of probe calls: short, because the user waits."""

STEP_KEY = "moot/probe"


@dataclass(frozen=True, slots=True)
class ExpectedReply:
    """Expected reply of a run, to be constrained to its schema.

    Attributes:
        model: reply type.
        labels: of a case; None for an open set.
        max_tokens: length limit.
        logprobs: whether its log-probabilities are requested, and whether they are required.
    """

    model: type[BaseModel]
    labels: tuple[str, ...] | None
    max_tokens: int
    logprobs: Literal["no", "wanted", "needed"] = "wanted"


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """Request to a probe: the asks of a run to one model.

    Attributes:
        decoding: of the role with most settings, so that unsupported settings are detected.
        timeout_s: deadline of an ask of the run.
        replies: replies to be constrained to a schema; may be empty.
        insists: whether a role has `structured: true`, so that a model without constrained decoding is refused.
        needs_logprobs: whether the run requires log-probabilities.
        free_logprobs: whether log-probabilities of an unconstrained reply are requested.
        streams: whether replies are streamed.
        reasoning_tokens: tokens of a reasoning model in addition to its reply.
        written: settings that the user set: they are never omitted.
    """

    decoding: Decoding
    timeout_s: float
    replies: Sequence[ExpectedReply] = ()
    insists: bool = False
    needs_logprobs: bool = False
    free_logprobs: bool = False
    streams: bool = False
    reasoning_tokens: int = 0
    written: frozenset[str] = frozenset()


class OnlyOverResponses(ModelUnavailable):
    """The service offers the model over its Responses API only, and was called over another."""


class SchemaRefused(Exception):
    """The model does not constrain a reply to a schema; the message states why."""


class LogprobsRefused(Exception):
    """The server refused a call because of its log-probabilities; the message states why."""


def declared_profile(model: Model, schemas: ConstraintMode) -> ModelProfile:
    """Profile as the backend declares it, for a model without probe calls."""
    can = model.capabilities
    known = ModelProfile(schemas=schemas, server=can.dialect, reasons=can.reasons, api=can.api)
    return known if can.max_temperature is not None else known.model_copy(update={"omitted": ("temperature", "top_p")})


_log = structlog.get_logger(__name__)

_WAITING = (
    "waiting for the first reply of a model's server: it may be loading its weights, or hang; "
    "look at the server, or lower the role's `timeout_s`"
)

_MESSAGES = (Message("system", "You reply in one word."), Message("user", "Say Yes"))
_FOLDED = (Message("user", f"{_MESSAGES[0].content}\n\n{_MESSAGES[1].content}"),)

_SHORT = 64
"""Length limit of a call that only tests a schema: the beginning of the reply shows whether it is followed."""

_SETTINGS = ("top_p", "temperature", "seed", "stop", "repetition_penalty", "reasoning_effort")
"""Settings that an error may name; of two that exclude each other, the first is omitted."""


class ProbeCalls:
    """Probe calls of one model, and their results so far.

    Args:
        model, trial: see `probe`.

    Attributes:
        profile: known capabilities of the model.
    """

    def __init__(self, model: Model, trial: ProbeRequest) -> None:
        self._model, self._trial = model, trial
        self.profile = declared_profile(model, "free")
        self._replied = False

    def learn(self, **found: object) -> None:
        """Record a finding in the profile."""
        self.profile = self.profile.model_copy(update=found)

    async def reply(self, schema: ReplySchema | None, *, logprobs: bool, streamed: bool = False) -> ModelReply:
        """Make one call, repeated without each setting that the error names and the user did not set.

        The first one may be as long as a reply of the run; the others are short.

        Args:
            schema: constrains the reply; None leaves it unconstrained.
            logprobs: whether to request the log-probabilities of the run.
            streamed: whether to stream it.

        Raises:
            LogprobsRefused, SchemaRefused: the server refuses the call because of them.
            OnlyOverResponses, ModelUnavailable: it fails for another reason.
            ConfigError: the model does not support a setting of the user.
        """
        while True:
            decoding = self._decoding(logprobs=logprobs)
            try:
                found = await self._called(decoding, schema, streamed=streamed)
            except ModelError as error:
                if not self._adapts(error, decoding, schema, streamed=streamed):
                    raise self._refusal(error, decoding, schema) from None
                continue
            self._replied = True
            self._note_reasoning(found)
            return found

    def _decoding(self, *, logprobs: bool) -> Decoding:
        whole = self._trial.decoding
        room = self._trial.reasoning_tokens if self.profile.reasons else 0
        bound = min(_SHORT, whole.max_tokens) if self._replied else whole.max_tokens
        asked = whole.top_logprobs if logprobs else None
        return self.profile.adapted(msgspec.structs.replace(whole, max_tokens=bound + room, top_logprobs=asked))

    async def _called(self, decoding: Decoding, schema: ReplySchema | None, *, streamed: bool) -> ModelReply:
        messages = _FOLDED if self.profile.folds_system else _MESSAGES
        ask = self._streamed if streamed else self._complete
        limit_s = self._trial.timeout_s
        try:
            with warn_when_slow(_WAITING, model=self._model.name, at_most_s=limit_s):
                async with asyncio.timeout(limit_s):
                    return await call_with_retries(PROBE_RETRIES, lambda: ask(messages, decoding, schema))
        except TimeoutError:
            raise ModelUnavailable(f"{self._model.name} did not answer within {limit_s:g} s") from None

    async def _complete(
        self, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None
    ) -> ModelReply:
        try:
            return await self._model.complete(messages, decoding, step_key=STEP_KEY, schema=schema)
        except ModelError as error:
            if error.retry_after_s is not None and error.retry_after_s > PROBE_RETRIES.total_s:
                raise ModelUnavailable(f"{self._model.name}: {error.message}") from None
            # llama.cpp answers 500 when the chat template refuses: a retry cannot help
            if error.kind == "server" and refuses_system(error.message):
                raise ModelError("request", error.message) from None
            raise

    async def _streamed(
        self, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None
    ) -> ModelReply:
        """Text of a streamed reply."""
        model = cast(StreamingModel, self._model)
        text, finish_reason = "", ""
        async with aclosing(model.stream(messages, decoding, step_key=STEP_KEY, schema=schema)) as pieces:
            async for piece in pieces:
                text += piece.text
                finish_reason = piece.finish_reason or finish_reason
        return ModelReply(text, finish_reason, Usage())

    def _refusal(self, error: ModelError, decoding: Decoding, schema: ReplySchema | None) -> Exception:
        """Maps a failure that no adaptation resolves to an exception."""
        if error.kind == "request" and decoding.top_logprobs is not None and names_logprobs(error.message):
            return LogprobsRefused(error.message)
        if error.kind == "request" and schema is not None and refuses_response_format(error.message):
            return SchemaRefused(error.message)
        if error.kind == "request" and self._model.capabilities.api == "chat" and only_over_responses(error.message):
            return OnlyOverResponses(f"{self._model.name}: {error.message}")
        return ModelUnavailable(f"{self._model.name}: {error.message}")

    def _adapts(self, error: ModelError, decoding: Decoding, schema: ReplySchema | None, *, streamed: bool) -> bool:
        """Whether to repeat the call: a setting is omitted from now on, and this is logged."""
        if error.kind != "request":
            return False
        return (
            self._asks_for_fewer(error.message, decoding)
            or self._leaves_out(error.message, decoding, schema, streamed=streamed)
            or self._gives_room(error.message)
        )

    def _asks_for_fewer(self, message: str, decoding: Decoding) -> bool:
        """Whether the error bounds the alternatives per token."""
        if not decoding.top_logprobs or not names_logprobs(message):
            return False
        most = most_alternatives(message, decoding.top_logprobs)
        if most is None:
            return False
        if "top_logprobs" in self._trial.written:
            raise ConfigError(
                f"model {self._model.name!r} gives fewer alternatives per token than {decoding.top_logprobs}: "
                f"set `top_logprobs: {most}`, or leave it out of the role ({message})"
            )
        self.learn(alternatives=most)
        _log.warning("the model gives fewer alternatives per token", model=self._model.name, top_logprobs=most)
        return True

    def _leaves_out(self, message: str, decoding: Decoding, schema: ReplySchema | None, *, streamed: bool) -> bool:
        """Whether the error names a setting that was sent.

        An error that also names the schema is about the schema. Of two exclusive settings the temperature is kept.
        """
        if schema is not None and names_response_format(message):
            return False
        if not self.profile.folds_system and refuses_system(message):
            self.learn(folds_system=True)
            _log.warning("the model supports no system message: it is prepended to the user's", model=self._model.name)
            return True
        if not self.profile.bounds_completion and "max_completion_tokens" in message:
            self.learn(bounds_completion=True)
            return True
        named = named_settings(message, self._sent(decoding, streamed=streamed))
        if not named:
            self._check_extra(message, decoding)
            return False
        name = next((each for each in named if each not in self._trial.written), None)
        if name is None:
            raise ConfigError(
                f"model {self._model.name!r} does not take this `{named[0]}`: leave it out of the role ({message})"
            )
        self.learn(omitted=(*self.profile.omitted, name))
        _log.warning("a setting that the model does not take is not sent", model=self._model.name, setting=name)
        return True

    def _sent(self, decoding: Decoding, *, streamed: bool) -> list[str]:
        """Settings of a call that can be omitted, except the user's own keys."""
        sent = [name for name in _SETTINGS if getattr(decoding, name) not in (None, ())]
        if streamed and decoding.stream_usage:
            sent.append("stream_options")
        stores = self._model.capabilities.api == "responses" and decoding.forbids_storing
        if stores and "store" not in _keys_of(decoding.extra):
            sent.append("store")
        return sent

    def _check_extra(self, message: str, decoding: Decoding) -> None:
        """Refuse a key of the user's own that the error names."""
        if named := named_settings(message, _keys_of(decoding.extra)):
            raise ConfigError(
                f"model {self._model.name!r} does not take `{named[0]}`: leave it out of the role's `extra` ({message})"
            )

    def _gives_room(self, message: str) -> bool:
        """Whether the error states that the tokens ended during reasoning: the model gets more from now on."""
        if self.profile.reasons or not is_out_of_tokens(message):
            return False
        self._found_to_reason()
        return True

    def _note_reasoning(self, reply: ModelReply) -> None:
        """Records a reasoning model: a reply whose tokens are all hidden reasoning, or that counts some."""
        all_hidden = not reply.text.strip() and reply.finish_reason == "length"
        if not self.profile.reasons and (all_hidden or reply.usage.reasoning_tokens or reply.reasoning):
            self._found_to_reason()

    def _found_to_reason(self) -> None:
        self.learn(reasons=True)
        _log.warning("the model reasons before it replies: its replies may be longer", model=self._model.name)


def _keys_of(extra: str) -> list[str]:
    return list(msgspec.json.decode(extra)) if extra else []


WAITED_S = 5.0
"""Seconds without a reply after which a warning is logged."""


@contextmanager
def warn_when_slow(waiting_for: str, *, model: str, at_most_s: float) -> Iterator[None]:
    """Logs one warning when a wait lasts longer than `WAITED_S`; uses the running event loop.

    Args:
        waiting_for: subject, possible reason and remedy, as a line that begins with "waiting for".
        model: name of the model.
        at_most_s: seconds after which the call times out.
    """
    timer = asyncio.get_running_loop().call_later(
        WAITED_S, lambda: _log.warning(waiting_for, model=model, waits_at_most_s=at_most_s)
    )
    try:
        yield
    finally:
        timer.cancel()
