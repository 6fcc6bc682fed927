"""Probe calls: trial calls before a run, each made like those of the run, and their purpose.

Each call goes to every server of a pool at once. What one of them refuses is asked of none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import structlog
from pydantic import BaseModel

from moot.actors.models.interface import Model, ModelReply, ReplySchema
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
from moot.actors.models.responses_wire import only_over_responses
from moot.actors.models.retry import RetryPolicy
from moot.actors.models.trial_replies import TrialReplies, alternatives_by_server, reply_differences
from moot.actors.models.trial_servers import TrialFailure, TrialServers
from moot.protocols.errors import ConfigError, ModelUnavailable
from moot.protocols.messages import Decoding, Message

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
        refusing_logprobs: names of the servers that refused log-probabilities.
    """

    def __init__(self, model: Model, trial: ProbeRequest) -> None:
        self._model, self._trial = model, trial
        self._servers = TrialServers(model, timeout_s=trial.timeout_s, retries=PROBE_RETRIES, step_key=STEP_KEY)
        self.profile = declared_profile(model, "free").model_copy(update={"untried": self._servers.untried})
        self.refusing_logprobs: set[str] = set()
        self._replied = False

    def learn(self, **found: object) -> None:
        """Record a finding in the profile."""
        self.profile = self.profile.model_copy(update=found)

    async def replies(self, schema: ReplySchema | None, *, logprobs: bool, streamed: bool = False) -> TrialReplies:
        """Make one call, repeated without each setting that an error names and the user did not set.

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
            messages = _FOLDED if self.profile.folds_system else _MESSAGES
            found = await self._servers.call(messages, decoding, schema, streamed=streamed)
            if isinstance(found, TrialFailure):
                if not self._adapts(found, decoding, schema, streamed=streamed):
                    raise self._refusal(found, decoding, schema)
                continue
            self.learn(untried=self._servers.untried)
            self._note_differences(found, decoding)
            self._replied = True
            for server, reply in found.items():
                self._note_reasoning(server, reply)
            return found

    def _decoding(self, *, logprobs: bool) -> Decoding:
        whole = self._trial.decoding
        room = self._trial.reasoning_tokens if self.profile.reasons else 0
        bound = min(_SHORT, whole.max_tokens) if self._replied else whole.max_tokens
        asked = whole.top_logprobs if logprobs else None
        return self.profile.adapted(msgspec.structs.replace(whole, max_tokens=bound + room, top_logprobs=asked))

    def _note_differences(self, replies: TrialReplies, decoding: Decoding) -> None:
        """Logs how the servers of a pool differ, and requests only as many alternatives as all of them give."""
        if not self._replied:
            for difference in reply_differences(replies):
                _log.warning("the servers of a pool differ", model=self._model.name, difference=difference)
        counts, asked = alternatives_by_server(replies), decoding.top_logprobs
        if asked and asked in counts.values() and min(counts.values()) < asked:
            fewest = min(counts, key=lambda server: counts[server])
            self._learn_alternatives(fewest, counts[fewest], asked, "others give as many")

    def _refusal(self, failure: TrialFailure, decoding: Decoding, schema: ReplySchema | None) -> Exception:
        """Maps a failure that no adaptation resolves to an exception."""
        message = failure.message
        if failure.kind != "request":
            return failure.unavailable
        why = f"{failure.server}: {message}" if self._servers.count > 1 else message
        if decoding.top_logprobs is not None and names_logprobs(message):
            self.refusing_logprobs.add(failure.server)
            return LogprobsRefused(why)
        if schema is not None and refuses_response_format(message):
            return SchemaRefused(why)
        if self._model.capabilities.api == "chat" and only_over_responses(message):
            return OnlyOverResponses(f"{failure.server}: {message}")
        return failure.unavailable

    def _adapts(self, failure: TrialFailure, decoding: Decoding, schema: ReplySchema | None, *, streamed: bool) -> bool:
        """Whether to repeat the call: a setting is omitted from now on, and this is logged."""
        if failure.kind != "request":
            return False
        return (
            self._asks_for_fewer(failure, decoding)
            or self._leaves_out(failure, decoding, schema, streamed=streamed)
            or self._gives_room(failure)
        )

    def _asks_for_fewer(self, failure: TrialFailure, decoding: Decoding) -> bool:
        """Whether the error bounds the alternatives per token."""
        if not decoding.top_logprobs or not names_logprobs(failure.message):
            return False
        most = most_alternatives(failure.message, decoding.top_logprobs)
        if most is None:
            return False
        self._learn_alternatives(failure.server, most, decoding.top_logprobs, failure.message)
        return True

    def _learn_alternatives(self, server: str, most: int, asked: int, why: str) -> None:
        if "top_logprobs" in self._trial.written:
            raise ConfigError(
                f"model {server!r} gives fewer alternatives per token than {asked}: "
                f"set `top_logprobs: {most}`, or leave it out of the role ({why})"
            )
        self.learn(alternatives=most)
        _log.warning("the model gives fewer alternatives per token", model=server, top_logprobs=most)

    def _leaves_out(
        self, failure: TrialFailure, decoding: Decoding, schema: ReplySchema | None, *, streamed: bool
    ) -> bool:
        """Whether the error names a setting that was sent.

        An error that also names the schema is about the schema. Of two exclusive settings the temperature is kept.
        """
        server, message = failure.server, failure.message
        if schema is not None and names_response_format(message):
            return False
        if not self.profile.folds_system and refuses_system(message):
            self.learn(folds_system=True)
            _log.warning("the model supports no system message: it is prepended to the user's", model=server)
            return True
        if not self.profile.bounds_completion and "max_completion_tokens" in message:
            self.learn(bounds_completion=True)
            return True
        named = named_settings(message, self._sent(decoding, streamed=streamed))
        if not named:
            self._check_extra(failure, decoding)
            return False
        name = next((each for each in named if each not in self._trial.written), None)
        if name is None:
            raise ConfigError(f"model {server!r} does not take this `{named[0]}`: leave it out of the role ({message})")
        self.learn(omitted=(*self.profile.omitted, name))
        _log.warning("a setting that the model does not take is not sent", model=server, setting=name)
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

    def _check_extra(self, failure: TrialFailure, decoding: Decoding) -> None:
        """Refuse a key of the user's own that the error names."""
        if named := named_settings(failure.message, _keys_of(decoding.extra)):
            raise ConfigError(
                f"model {failure.server!r} does not take `{named[0]}`: leave it out of the role's `extra` "
                f"({failure.message})"
            )

    def _gives_room(self, failure: TrialFailure) -> bool:
        """Whether the error states that the tokens ended during reasoning: the model gets more from now on."""
        if self.profile.reasons or not is_out_of_tokens(failure.message):
            return False
        self._found_to_reason(failure.server)
        return True

    def _note_reasoning(self, server: str, reply: ModelReply) -> None:
        """Records a reasoning model: a reply whose tokens are all hidden reasoning, or that counts some."""
        all_hidden = not reply.text.strip() and reply.finish_reason == "length"
        if not self.profile.reasons and (all_hidden or reply.usage.reasoning_tokens or reply.reasoning):
            self._found_to_reason(server)

    def _found_to_reason(self, server: str) -> None:
        self.learn(reasons=True)
        _log.warning("the model reasons before it replies: its replies may be longer", model=server)


def _keys_of(extra: str) -> list[str]:
    return list(msgspec.json.decode(extra)) if extra else []
