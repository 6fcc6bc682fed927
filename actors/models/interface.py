"""Model interface: the methods of every model backend, and its declared capabilities."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.models.families import Api
from moot.actors.models.schema_dialects import DialectName
from moot.protocols.messages import Decoding, LogprobStage, Message, Usage

Offered = Literal["no", "on request", "yes"]
"""A backend's support for JSON schemas; see `Capabilities.structured_output`."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a backend; checked before a run starts.

    Attributes:
        max_alternatives: largest supported `top_logprobs`; 0 without log-probabilities.
        logprob_stage: whether probabilities are before or after temperature, and before a schema's mask in both cases;
            `unknown` for a server until the trial calls.
        images: whether messages may contain pictures.
        structured_output: whether it can constrain replies to a schema: `yes` does so, `on request` is for a server
            that a trial call must test first.
        dialect: of the schemas that it accepts; `portable` until another is detected.
        streaming: whether it also offers `stream`.
        seeds: whether a reply is reproducible: by a seed in the request, or because it is a pure function of it.
        reasons: whether it is known to generate hidden reasoning, which counts against the reply's length.
        settings: which of `seed`, `stop`, `repetition_penalty`, `reasoning_effort` and `extra` it supports.
        efforts: supported values of `reasoning_effort`; empty when unknown.
        api: OpenAI's API in use; `chat` for all other backends.
        max_temperature: highest supported temperature; None without support.
        simulated: whether its replies come from a random model and must be labelled so.
        in_process: whether it runs in a process of moot, where a cancelled reply is not billed.
    """

    max_alternatives: int = 0
    logprob_stage: LogprobStage = "unknown"
    images: bool = False
    structured_output: Offered = "no"
    dialect: DialectName = "portable"
    streaming: bool = False
    seeds: bool = False
    reasons: bool = False
    settings: frozenset[str] = frozenset()
    efforts: tuple[str, ...] = ()
    api: Api = "chat"
    max_temperature: float | None = 2.0
    simulated: bool = False
    in_process: bool = False


@dataclass(frozen=True, slots=True)
class ReplySchema:
    """JSON schema of one reply, for constrained decoding.

    Attributes:
        name: of the reply type, as in the OpenAI API.
        body: the schema as JSON.
    """

    name: str
    body: bytes


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Token log-probabilities of one reply of T tokens with K alternatives each.

    Attributes:
        tokens: the T tokens. Their concatenation has the reply's text, at `token_logprobs.text_start`.
        logprob: shape (T,), natural log, float32; NaN where the server gave no finite number.
        alt_tokens: T * K alternatives, row by row; padded with "".
        alt_logprob: shape (T, K), float32; padded with NaN.
    """

    tokens: list[str]
    logprob: npt.NDArray[np.float32]
    alt_tokens: list[str]
    alt_logprob: npt.NDArray[np.float32]

    @property
    def alternatives(self) -> int:
        """K, the number of alternatives per token."""
        return int(self.alt_logprob.shape[1])


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """Rate limits from a response's headers; None where a header is missing.

    Attributes:
        requests_left, tokens_left: remaining quota in the server's window.
        requests_limit, tokens_limit: the window's limits.
    """

    requests_left: int | None = None
    requests_limit: int | None = None
    tokens_left: int | None = None
    tokens_limit: int | None = None


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """Source of a replayed reply, for which no model was called.

    Attributes:
        source: id of the recorded reply: `RUN:CASE/ATTEMPT/PATH`.
        logprob_stage: of the recorded reply's model.
        error: failure of the recorded ask, when this reply was its last and unparsable; else empty.
        constrained: whether the reply was constrained to a schema, or may have been, where its record does not say.
    """

    source: str
    logprob_stage: LogprobStage = "unknown"
    error: str = ""
    constrained: bool = True


@dataclass(frozen=True, slots=True)
class ModelReply:
    """Reply of a backend to one call.

    Attributes:
        text: the reply, without hidden reasoning; may be empty.
        finish_reason: `stop`, `length`, `content_filter` or the server's own word.
        usage: billed tokens as reported by the server, or an estimate where they are too few for the texts.
        tokens: log-probabilities; None when none were requested or returned.
        http_attempts: number of requests, retries included.
        limits: the rate limits in the response's headers; None without any.
        replayed: source of a replayed reply; None when a model was called.
        stated: usage as reported by the server, where `usage` is an estimate instead; None otherwise.
        reasoning: hidden reasoning before the reply, as far as the server returns it; may be empty.
        from_reasoning: whether the server put the reply in a field for reasoning, and left the content empty.
        prompt_cut: whether the server seems to have read only a part of the prompt; see `prompt_cuts`.
        overlong: whether the server sent more than the requested tokens can be, and the rest was cut off; see
            `reply_bounds`.
        without_logprobs: whether log-probabilities were requested, and none came with the text.
        server: base URL of the server that replied, of a pool; empty for other models.
        served_model: the model's name and fingerprint as the server reports them; empty without a report.
    """

    text: str
    finish_reason: str
    usage: Usage
    tokens: TokenLogprobs | None = None
    http_attempts: int = 1
    limits: RateHeaders | None = None
    replayed: ReplaySource | None = None
    stated: Usage | None = None
    reasoning: str = ""
    from_reasoning: bool = False
    prompt_cut: bool = False
    overlong: bool = False
    without_logprobs: bool = False
    server: str = ""
    served_model: str = ""


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """One piece of a streamed reply.

    The concatenated texts of all pieces are the reply, with a `<think>` block at its start if the model wrote one.

    Attributes:
        text: added text; may be empty.
        tokens: log-probabilities of this piece's tokens; None when none were requested or returned.
        finish_reason: as in `ModelReply`, on the piece that ends the text; empty before.
        usage: counts so far, where the server reports them: on the last piece, with some servers on every one.
        limits: on the first piece, the rate limits in the response's headers; None otherwise.
        reasoning: text added to a separate field for hidden reasoning; then the tokens of the piece belong to it.
        from_reasoning: see `ModelReply`; only of a reply in one piece.
        overlong: see `ModelReply`; only of the last piece.
        server, served_model: see `ModelReply`.
    """

    text: str
    tokens: TokenLogprobs | None = None
    finish_reason: str = ""
    usage: Usage | None = None
    limits: RateHeaders | None = None
    reasoning: str = ""
    from_reasoning: bool = False
    overlong: bool = False
    server: str = ""
    served_model: str = ""


class Model(Protocol):
    """Interface of a language model; one instance serves many debates, and `complete` may be cancelled at any await."""

    name: str
    capabilities: Capabilities

    async def complete(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> ModelReply:
        """Complete one conversation.

        Args:
            messages: the conversation so far, in order.
            decoding: sampling parameters.
            step_key: identifies the step, for a server's counts and a simulation's seeds.
            schema: constrains the reply to a JSON object that fits it; None leaves it unconstrained. Only for a backend
                whose `structured_output` is not `no`; `text` is the JSON in either case.

        Raises:
            ModelError: with the kind of failure.
        """
        ...

    async def check(self) -> None:
        """Raise a `UserError` if the model cannot be used, such as for a missing key; costs nothing."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class StreamingModel(Model, Protocol):
    """Interface of a model with streamed replies: one that declares `streaming`."""

    def stream(
        self, messages: Sequence[Message], decoding: Decoding, *, step_key: str, schema: ReplySchema | None = None
    ) -> AsyncGenerator[StreamPiece, None]:
        """Stream one reply in pieces; see `complete` for the arguments.

        To stop early, close the generator (`contextlib.aclosing`); this closes the HTTP response, so that the server
        stops as well. The billed tokens of a reply stopped early are unknown.

        Raises:
            ModelError: while iterating, with the kind of failure. Pieces may have been yielded before it.
        """
        ...


class ModelError(Exception):
    """Failure of a model call.

    Args:
        kind: one of `AskFailed`'s kinds.
        message: the server's message, without any secret.
        retry_after_s: wait requested by the server; None without one.
        may_be_billed: whether the server may have worked, and billed, without a usable response.
        limits: rate limits in the response's headers; None without any, or without a response.
        replayed: id of the recorded step when no model was called, so that a retry cannot help; else empty.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        retry_after_s: float | None = None,
        *,
        may_be_billed: bool = False,
        limits: RateHeaders | None = None,
        replayed: str = "",
    ) -> None:
        super().__init__(kind, message, retry_after_s)
        self.kind, self.message, self.retry_after_s = kind, message, retry_after_s
        self.may_be_billed, self.limits, self.replayed = may_be_billed, limits, replayed

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@contextmanager
def failures_may_be_billed(limits: RateHeaders | None) -> Iterator[None]:
    """Marks failures inside as those of a request that the server received and may bill; adds the rate limits."""
    try:
        yield
    except ModelError as error:
        error.may_be_billed, error.limits = True, limits
        raise


def fold_system_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Folds system messages into the first user message."""
    system = [message.content for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    if not system or not others:
        return messages
    first = msgspec.structs.replace(others[0], content="\n\n".join([*system, others[0].content]))
    return (first, *others[1:])
