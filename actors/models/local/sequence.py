"""State of one call during generation."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.actors.models.hidden_reasoning import split_reasoning
from moot.actors.models.interface import ModelError, ModelReply, TokenLogprobs
from moot.actors.models.local.token_decoder import TokenDecoder
from moot.actors.models.local.token_mask import TokenMask
from moot.actors.models.token_logprobs import without_reasoning
from moot.protocols.messages import Decoding, Message, Usage

IntTable = npt.NDArray[np.int64]
FloatTable = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Request for one generation.

    Attributes:
        messages: the conversation.
        decoding: sampling parameters.
        digest: 16 bytes that seed the sample.
        reply: future of the reply or the `ModelError`; cancelling it abandons the request.
        mask: token mask of the reply's schema; None for an unconstrained reply.
    """

    messages: Sequence[Message]
    decoding: Decoding
    digest: bytes
    reply: Future[ModelReply]
    mask: TokenMask | None = None

    def fail(self, error: ModelError) -> None:
        """Fail the request with an error, unless it was cancelled."""
        try:
            self.reply.set_exception(error)
        except InvalidStateError:
            return


class SequenceState:
    """Generation state of one call: its row in the batch, and its tokens so far.

    Args:
        call: the request.
        prompt: its token ids.
        limit: most tokens of the reply, 1 and up.
        uniforms: a number in (0, 1) for each token.
    """

    def __init__(
        self, call: GenerationRequest, prompt: list[int], limit: int, uniforms: npt.NDArray[np.float64]
    ) -> None:
        decoding = call.decoding
        self.call, self.prompt, self.limit = call, prompt, limit
        self.alternatives = decoding.top_logprobs
        self.temperature = 1.0 if decoding.temperature is None else decoding.temperature
        self.top_p = 1.0 if decoding.top_p is None else decoding.top_p
        self._uniforms = uniforms
        self._ids: list[int] = []
        self._logprobs: list[float] = []
        self._best: list[tuple[IntTable, FloatTable]] = []

    @property
    def most_tokens(self) -> int:
        """Maximum tokens of the prompt and the reply together."""
        return len(self.prompt) + self.limit

    @property
    def uniform(self) -> float:
        """Uniform variate for the next token."""
        return float(self._uniforms[len(self._ids)])

    def add(self, token: int, logprob: float, ids: IntTable, logprobs: FloatTable) -> str:
        """Append a token, with the ids and log-probabilities of the most probable alternatives.

        Returns:
            Reason why the reply ends with it: `stop` when it is complete by its schema, `length` at its maximum length;
                empty when it continues.

        Raises:
            ModelError: the reply's schema does not permit the token.
        """
        mask = self.call.mask
        if mask is not None:
            mask.advance(token)
        self._ids.append(token)
        if self.alternatives is not None:
            self._logprobs.append(logprob)
            self._best.append((ids[: self.alternatives], logprobs[: self.alternatives]))
        if mask is not None and mask.complete:
            return "stop"
        return "length" if len(self._ids) >= self.limit else ""

    def finish(self, reason: str, pieces: TokenDecoder) -> None:
        """Deliver the reply, unless its call was cancelled."""
        tokens = pieces.of_reply(self._ids)
        split = split_reasoning("".join(tokens))
        known = None if self.alternatives is None else self._token_logprobs(tokens, self.alternatives, pieces)
        reply = ModelReply(
            text=split.text,
            finish_reason=reason,
            usage=Usage(len(self.prompt), len(self._ids)),
            tokens=without_reasoning(known, split.text, split.reasoning),
            reasoning=split.reasoning,
        )
        try:
            self.call.reply.set_result(reply)
        except InvalidStateError:
            return

    def _token_logprobs(self, tokens: list[str], alternatives: int, pieces: TokenDecoder) -> TokenLogprobs:
        names: list[str] = []
        table = np.full((len(tokens), alternatives), np.nan, dtype=np.float32)
        for line, (ids, logprobs) in enumerate(self._best):
            table[line, : len(ids)] = logprobs
            names += [pieces.alternative(token) for token in ids.tolist()]
            names += [""] * (alternatives - len(ids))
        logprob = np.array(self._logprobs, dtype=np.float32)
        # Rounding can lift a certain token's probability a little above 1.
        return TokenLogprobs(tokens, np.minimum(logprob, 0.0), names, np.minimum(table, 0.0))
