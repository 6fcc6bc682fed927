"""Trial calls before a run: what no list of models tells, a reply does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import structlog
from pydantic import BaseModel

from moot.actors.models.interface import Model, ModelError, ModelReply
from moot.actors.models.logprob_mask import surely_opens
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.reply_schema import ReplySchema, reply_schema
from moot.actors.models.response_format import names_response_format, refuses_response_format
from moot.actors.models.responses_wire import only_over_responses
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.actors.models.schema_dialects import DialectName
from moot.protocols.errors import CapabilityMissing, ConfigError, ModelUnavailable
from moot.protocols.messages import Decoding, Message

_log = structlog.get_logger(__name__)

PROBE_RETRIES = RetryPolicy(max_attempts=4, total_s=20.0, cap_s=2.0, retry_after_cap_s=5.0)
"""How a call before a run is repeated: the user waits for it."""

_MESSAGES = (Message("system", "You reply in one word."), Message("user", "Say Yes"))
_FOLDED = (Message("user", f"{_MESSAGES[0].content}\n\n{_MESSAGES[1].content}"),)
STEP_KEY = "moot/probe"

_SHORT = 64
"""Tokens of a trial that only finds out whether a schema is taken: its beginning shows whether it is kept to."""


_OUT_OF_TOKENS = "output limit was reached"
"""What OpenAI's 400 says of a reply that was still hidden reasoning at the end of its tokens."""

_NO_SYSTEM = re.compile(
    r"system[^{}\[\]]{0,40}not supported|not support[^{}\[\]]{0,40}system|only user and assistant|must alternate"
)
"""What chat templates and servers say of a system message that they do not know; not one that is only quoted."""


@dataclass(frozen=True, slots=True)
class AskedReply:
    """A reply that a run will ask for.

    Attributes:
        model: its type.
        labels: those of a case; None for an open set.
        max_tokens: its bound.
    """

    model: type[BaseModel]
    labels: tuple[str, ...] | None
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What a run will ask of one model.

    Attributes:
        decoding: of the role that asks for most, so that a setting which the server does not take is found.
        timeout_s: the deadline of an ask of the run.
        replies: what is to be held to a schema; empty when nothing is.
        insists: whether a role says `structured: true`, so that a model that holds no replies is refused.
        needs_logprobs: whether the run cannot do without log-probabilities.
        reasoning_tokens: what a model that thinks first may write beside its reply.
        written: the settings that the user wrote down: they are never left out.
    """

    decoding: Decoding
    timeout_s: float
    replies: Sequence[AskedReply] = ()
    insists: bool = False
    needs_logprobs: bool = False
    reasoning_tokens: int = 0
    written: frozenset[str] = frozenset()


class OnlyOverResponses(ModelUnavailable):
    """The service offers the model over its Responses API only, and was asked over another."""


class _SchemaRefused(Exception):
    """The model does not hold replies as it was asked to; the message says why."""


async def probe(model: Model, trial: Trial) -> tuple[ModelProfile, bool]:
    """Make calls as the run will make them, until it is known how; they may be billed.

    Returns:
        What was found, and whether log-probabilities with alternatives came back; False when none were asked for.

    Raises:
        OnlyOverResponses: the service says so of an OpenAI model that is asked over chat completions.
        ModelUnavailable: a call failed for another reason than a schema, a log-probability or a setting that nobody
            wrote down.
        CapabilityMissing: a role insists on schemas, and the model holds no replies to them.
        ConfigError: the model does not take a setting that the user wrote down, or log-probabilities are refused that
            only the user wants.
    """
    why = ""
    learnt: dict[str, object] = {}
    for profile in _candidates(model, trial):
        candidate = _Candidate(model, trial, profile.model_copy(update=learnt))
        try:
            return await candidate.tried()
        except _SchemaRefused as refused:
            why, learnt = str(refused), candidate.learnt()
    if trial.insists:
        raise CapabilityMissing(
            f"{model.name} cannot hold replies to a schema: say `--structured off`, or leave `structured: true` out "
            f"of its roles ({why})"
        )
    found, given = await _Candidate(model, trial, declared_profile(model, "free").model_copy(update=learnt)).tried()
    if why and (given or not trial.needs_logprobs):
        _log.warning("replies are not held to a schema, and read as free JSON", model=model.name, why=why)
    return found, given


def _candidates(model: Model, trial: Trial) -> Iterator[ModelProfile]:
    """Ways to hold replies, the strictest first."""
    if not trial.replies:
        return
    dialects = dict.fromkeys((model.capabilities.dialect, "portable"))
    listed = (True, False) if any(reply.labels for reply in trial.replies) else (True,)
    for dialect in dialects:
        for labels in listed:
            yield declared_profile(model, dialect, listed_labels=labels)


def declared_profile(
    model: Model, schemas: DialectName | Literal["free"], *, listed_labels: bool = True
) -> ModelProfile:
    """What the backend declares of itself, for a model that is not tried or not tried yet."""
    can = model.capabilities
    known = ModelProfile(
        schemas=schemas, listed_labels=listed_labels, server=can.dialect, reasons=can.reasons, api=can.api
    )
    return known if can.max_temperature is not None else known.model_copy(update={"omitted": ("temperature", "top_p")})


class _Candidate:
    """One way to ask a model, tried with every reply of the run.

    Args:
        model, trial: see `probe`.
        profile: the way.
    """

    def __init__(self, model: Model, trial: Trial, profile: ModelProfile) -> None:
        self._model, self._trial, self._profile = model, trial, profile
        changes: dict[str, object] = dict.fromkeys(profile.omitted)
        if profile.bounds_completion:
            changes["bounds_completion"] = True
        self._decoding = msgspec.structs.replace(trial.decoding, **changes)
        self._ignores = False

    def learnt(self) -> dict[str, object]:
        """What was found that holds for other ways to ask, too."""
        return self._profile.model_dump(include={"reasons", "folds_system", "bounds_completion", "omitted"})

    async def tried(self) -> tuple[ModelProfile, bool]:
        """The profile, with what had to be left out, and whether log-probabilities came.

        Raises:
            _SchemaRefused: the model does not hold replies in this way.
        """
        schemas = self._schemas()
        reply = await self._reply(schemas[0] if schemas else None)
        for schema in schemas[1:]:
            self._decoding = msgspec.structs.replace(self._decoding, max_tokens=min(_SHORT, self._decoding.max_tokens))
            await self._reply(schema)
        return self._profile, _has_alternatives(reply)

    def _schemas(self) -> list[ReplySchema]:
        if self._profile.schemas == "free":
            return []
        found: dict[ReplySchema, None] = {}
        for asked in self._trial.replies:
            try:
                schema = reply_schema(
                    asked.model,
                    self._profile.schemas,
                    asked.labels,
                    asked.max_tokens,
                    listed_labels=self._profile.listed_labels,
                )
            except ConfigError:  # no schema can hold it: it is left free, or its first ask says so
                continue
            found[schema] = None
        return list(found)

    async def _reply(self, schema: ReplySchema | None) -> ModelReply | None:
        """One call; None when the server gives no log-probabilities and nothing was to be held."""
        while True:
            try:
                reply = await self._called(schema)
            except ModelError as error:
                if error.kind != "request":
                    raise ModelUnavailable(f"{self._model.name}: {error.message}") from None
                if self._model.capabilities.api == "chat" and only_over_responses(error.message):
                    raise OnlyOverResponses(f"{self._model.name}: {error.message}") from None
                if self._leaves_out(error.message, schema) or self._needs_room(error.message):
                    continue
                self._check_refusal(error.message, schema)
                return None
            self._note_reasoning(reply)
            self._note_mask(reply, schema)
            if schema is not None and not _is_held(reply, schema):
                self._check_ignored(f"it takes a schema and replies {reply.text.strip()[:60]!r}")
            return reply

    def _note_reasoning(self, reply: ModelReply) -> None:
        """A reply whose tokens are all hidden reasoning, or that counts some, tells that the model thinks first."""
        all_hidden = not reply.text.strip() and reply.finish_reason == "length"
        if not self._profile.reasons and (all_hidden or reply.usage.reasoning_tokens or reply.reasoning):
            self._found_to_reason()

    def _needs_room(self, message: str) -> bool:
        """Whether the error says that the model still thought when its tokens ended: it gets more from now on."""
        if self._profile.reasons or _OUT_OF_TOKENS not in message.lower():
            return False
        self._found_to_reason()
        return True

    def _found_to_reason(self) -> None:
        self._profile = self._profile.model_copy(update={"reasons": True})
        _log.warning("the model thinks before it replies: its replies may be longer", model=self._model.name)

    def _note_mask(self, reply: ModelReply, schema: ReplySchema | None) -> None:
        """A model that was asked to say Yes and is sure of the bracket of a JSON object had no other choice."""
        if schema is not None and reply.tokens is not None and surely_opens(reply.tokens):
            self._profile = self._profile.model_copy(update={"masked_logprobs": True})

    def _check_ignored(self, why: str) -> None:
        """A schema that is taken and not kept to is not sent, unless a role insists."""
        if not self._trial.insists:
            raise _SchemaRefused(why)
        if not self._ignores:
            _log.warning("replies may not be held to their schemas", model=self._model.name, why=why)
        self._ignores = True

    async def _called(self, schema: ReplySchema | None) -> ModelReply:
        messages = _FOLDED if self._profile.folds_system else _MESSAGES
        room = self._trial.reasoning_tokens if self._profile.reasons else 0
        decoding = msgspec.structs.replace(self._decoding, max_tokens=self._decoding.max_tokens + room)
        try:
            async with asyncio.timeout(self._trial.timeout_s):
                return await call_with_retries(PROBE_RETRIES, lambda: self._complete(messages, decoding, schema))
        except TimeoutError:
            raise ModelUnavailable(f"{self._model.name} did not answer within {self._trial.timeout_s:g} s") from None

    async def _complete(
        self, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None
    ) -> ModelReply:
        try:
            return await self._model.complete(messages, decoding, step_key=STEP_KEY, schema=schema)
        except ModelError as error:
            # llama.cpp answers 500 where the chat template refuses: no other attempt goes better
            if error.kind == "server" and _refuses_system(error.message):
                raise ModelError("request", error.message) from None
            raise

    def _leaves_out(self, message: str, schema: ReplySchema | None) -> bool:
        """Whether the error names a sampling setting that was sent: it is left out from now on, and that is said.

        One that names the schema, too, is about that. Of two settings that exclude each other the temperature stays.
        """
        if schema is not None and names_response_format(message):
            return False
        if not self._profile.folds_system and _refuses_system(message):
            self._profile = self._profile.model_copy(update={"folds_system": True})
            _log.warning("the model takes no system message: it is put before the user's", model=self._model.name)
            return True
        if not self._profile.bounds_completion and "max_completion_tokens" in message:
            self._profile = self._profile.model_copy(update={"bounds_completion": True})
            self._decoding = msgspec.structs.replace(self._decoding, bounds_completion=True)
            return True
        named = [
            name for name in ("top_p", "temperature") if name in message and getattr(self._decoding, name) is not None
        ]
        if not named:
            return False
        name = next((each for each in named if each not in self._trial.written), None)
        if name is None:
            raise ConfigError(
                f"model {self._model.name!r} does not take this `{named[0]}`: leave it out of the role ({message})"
            )
        self._decoding = msgspec.structs.replace(self._decoding, **{name: None})
        self._profile = self._profile.model_copy(update={"omitted": (*self._profile.omitted, name)})
        _log.warning("a setting that the model does not take is not sent", model=self._model.name, setting=name)
        return True

    def _check_refusal(self, message: str, schema: ReplySchema | None) -> None:
        """Pass a request that was refused for its log-probabilities, if the caller says why; raise for another.

        Every ask of the run brings them: a request that is refused with them is refused in the run as well.
        """
        about_logprobs = bool(self._decoding.top_logprobs) and "logprob" in message.lower()
        if schema is not None and (about_logprobs or refuses_response_format(message)):
            raise _SchemaRefused(message)
        if not about_logprobs:
            raise ModelUnavailable(f"{self._model.name}: {message}")
        if not self._trial.needs_logprobs:
            raise ConfigError(
                f"model {self._model.name!r} gives no log-probabilities: leave `top_logprobs` out ({message})"
            )


def _refuses_system(message: str) -> bool:
    """Whether a server's error says that the chat template knows no system message."""
    return _NO_SYSTEM.search(message.lower()) is not None


def _is_held(reply: ModelReply, schema: ReplySchema) -> bool:
    """Whether a reply begins as the schema wants it; one that is empty, all hidden reasoning, may have been."""
    text = reply.text.lstrip()
    names = msgspec.json.decode(schema.body)["properties"]
    return not text or (text.startswith("{") and any(f'"{name}"' in text for name in names))


def _has_alternatives(reply: ModelReply | None) -> bool:
    return reply is not None and reply.tokens is not None and bool(np.isfinite(reply.tokens.alt_logprob).any())
