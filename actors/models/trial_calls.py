"""The calls of a trial: each made as the run will make it, without what the model was found not to take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import cast

import msgspec
import structlog

from moot.actors.models.interface import Model, ModelError, ModelReply, StreamingModel
from moot.actors.models.refusals import (
    is_out_of_tokens,
    most_alternatives,
    named_settings,
    names_logprobs,
    refuses_system,
)
from moot.actors.models.reply_schema import ReplySchema
from moot.actors.models.response_format import names_response_format, refuses_response_format
from moot.actors.models.responses_wire import only_over_responses
from moot.actors.models.retry import call_with_retries
from moot.actors.models.trial import (
    PROBE_RETRIES,
    STEP_KEY,
    LogprobsRefused,
    OnlyOverResponses,
    SchemaRefused,
    Trial,
    declared_profile,
)
from moot.actors.models.waiting import told_when_long
from moot.protocols.errors import ConfigError, ModelUnavailable
from moot.protocols.messages import Decoding, Message, Usage

_log = structlog.get_logger(__name__)

_WAITING = (
    "waiting for the first reply of a model's server: it may be loading its weights, or hang; "
    "look at the server, or lower the role's `timeout_s`"
)

_MESSAGES = (Message("system", "You reply in one word."), Message("user", "Say Yes"))
_FOLDED = (Message("user", f"{_MESSAGES[0].content}\n\n{_MESSAGES[1].content}"),)

_SHORT = 64
"""Tokens of a trial that only finds out whether a schema is taken: its beginning shows whether it is kept to."""

_SETTINGS = ("top_p", "temperature", "seed", "stop", "repetition_penalty", "reasoning_effort")
"""Settings that an error may name; of two that exclude each other, the first is left out."""


class TrialCalls:
    """The calls of one trial, and what they have found out so far.

    Args:
        model, trial: see `probe`.

    Attributes:
        profile: what is known of the model.
    """

    def __init__(self, model: Model, trial: Trial) -> None:
        self._model, self._trial = model, trial
        self.profile = declared_profile(model, "free")
        self._replied = False

    def learn(self, **found: object) -> None:
        """Put what was found into the profile."""
        self.profile = self.profile.model_copy(update=found)

    async def reply(self, schema: ReplySchema | None, *, logprobs: bool, streamed: bool = False) -> ModelReply:
        """The reply to one call, made again without each setting that the error names and nobody wrote down.

        The first one may be as long as a reply of the run, the others are short.

        Args:
            schema: what the reply is held to; None leaves it free.
            logprobs: whether the log-probabilities of the run are asked for.
            streamed: whether to read it while it is written.

        Raises:
            LogprobsRefused, SchemaRefused: for these the server refuses the call.
            OnlyOverResponses, ModelUnavailable: it fails for another reason.
            ConfigError: the model does not take what the user wrote down.
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
            with told_when_long(_WAITING, model=self._model.name, at_most_s=limit_s):
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
            # llama.cpp answers 500 where the chat template refuses: no other attempt goes better
            if error.kind == "server" and refuses_system(error.message):
                raise ModelError("request", error.message) from None
            raise

    async def _streamed(
        self, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None
    ) -> ModelReply:
        """The text alone of a reply that is read while it is written."""
        model = cast(StreamingModel, self._model)
        text, finish_reason = "", ""
        async with aclosing(model.stream(messages, decoding, step_key=STEP_KEY, schema=schema)) as pieces:
            async for piece in pieces:
                text += piece.text
                finish_reason = piece.finish_reason or finish_reason
        return ModelReply(text, finish_reason, Usage())

    def _refusal(self, error: ModelError, decoding: Decoding, schema: ReplySchema | None) -> Exception:
        """What a failure that nothing was left out for means."""
        if error.kind == "request" and decoding.top_logprobs is not None and names_logprobs(error.message):
            return LogprobsRefused(error.message)
        if error.kind == "request" and schema is not None and refuses_response_format(error.message):
            return SchemaRefused(error.message)
        if error.kind == "request" and self._model.capabilities.api == "chat" and only_over_responses(error.message):
            return OnlyOverResponses(f"{self._model.name}: {error.message}")
        return ModelUnavailable(f"{self._model.name}: {error.message}")

    def _adapts(self, error: ModelError, decoding: Decoding, schema: ReplySchema | None, *, streamed: bool) -> bool:
        """Whether the call is to be made again: something is left out from now on, and that is said."""
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
                f"say `top_logprobs: {most}`, or leave it out of the role ({message})"
            )
        self.learn(alternatives=most)
        _log.warning("the model gives fewer alternatives per token", model=self._model.name, top_logprobs=most)
        return True

    def _leaves_out(self, message: str, decoding: Decoding, schema: ReplySchema | None, *, streamed: bool) -> bool:
        """Whether the error names a setting that was sent.

        One that names the schema, too, is about that. Of two settings that exclude each other the temperature stays.
        """
        if schema is not None and names_response_format(message):
            return False
        if not self.profile.folds_system and refuses_system(message):
            self.learn(folds_system=True)
            _log.warning("the model takes no system message: it is put before the user's", model=self._model.name)
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
        """The settings of a call that can be left out of it, a user's own keys aside."""
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
        """Whether the error says that the model still thought when its tokens ended: it gets more from now on."""
        if self.profile.reasons or not is_out_of_tokens(message):
            return False
        self._found_to_reason()
        return True

    def _note_reasoning(self, reply: ModelReply) -> None:
        """A reply whose tokens are all hidden reasoning, or that counts some, tells that the model thinks first."""
        all_hidden = not reply.text.strip() and reply.finish_reason == "length"
        if not self.profile.reasons and (all_hidden or reply.usage.reasoning_tokens or reply.reasoning):
            self._found_to_reason()

    def _found_to_reason(self) -> None:
        self.learn(reasons=True)
        _log.warning("the model thinks before it replies: its replies may be longer", model=self._model.name)


def _keys_of(extra: str) -> list[str]:
    return list(msgspec.json.decode(extra)) if extra else []
