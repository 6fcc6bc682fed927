"""Generation scheduler: selects the calls of a batch, and runs its decoding steps."""

from __future__ import annotations

import math
from collections.abc import Callable

from moot.actors.models.interface import ModelError
from moot.actors.models.local.batch import Batch
from moot.actors.models.local.prompt import PromptEncoder
from moot.actors.models.local.sampling import log_probabilities, next_tokens, uniforms
from moot.actors.models.local.sequence import FloatTable, GenerationRequest, IntTable, SequenceState
from moot.actors.models.local.token_decoder import TokenDecoder
from moot.actors.models.local.token_mask import permitted_only
from moot.actors.models.local.weights import Weights
from moot.actors.models.openai_errors import plain

MOST_ROWS = 64
"""Most replies in a batch."""

MOST_TOKENS = 65_536
"""Most tokens with keys and values in a batch, padding included; a single call may need more."""

MOST_READ = 16_384
"""Most prompt tokens read between two steps, padding included; a single prompt may be longer."""


class Generation:
    """Calls in flight of one model; single-threaded.

    Args:
        weights: the model.
    """

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._prompts, self._pieces = PromptEncoder(weights.tokenizer), TokenDecoder(weights.tokenizer)
        self._batch = Batch(weights)
        self._head: SequenceState | None = None

    @property
    def busy(self) -> bool:
        """Whether a call is in flight."""
        return bool(self._batch.rows) or self._head is not None

    def admit(self, next_call: Callable[[], GenerationRequest | None]) -> None:
        """Admit as many waiting calls as fit, in FIFO order; a call that does not fit yet blocks those behind it.

        Args:
            next_call: pops the call that has waited longest; None when none waits.
        """
        joining: list[SequenceState] = []
        while len(self._batch.rows) + len(joining) < MOST_ROWS:
            row, self._head = self._head or self._next_row(next_call), None
            if row is None:
                break
            if not self._fits(joining, row):
                self._head = row
                break
            if not row.call.reply.cancelled():
                joining.append(row)
        if joining:
            try:
                self._batch.join(joining)
            except Exception as error:
                _fail(joining, error)

    def step(self) -> None:
        """One decoding step: draw one token for every row, deliver finished replies, and compute the next logits."""
        try:
            self._leave([place for place, row in enumerate(self._batch.rows) if row.call.reply.cancelled()])
            if self._batch.rows:
                self._draw()
        except Exception as error:
            _fail(self._batch.rows, error)
            self._batch.clear()

    def close(self, why: str) -> None:
        """Fail what is in flight."""
        rows = [*self._batch.rows, *([self._head] if self._head is not None else [])]
        for row in rows:
            row.call.fail(ModelError("request", why))
        self._batch.clear()

    def _draw(self) -> None:
        rows, logits = self._batch.rows, self._batch.logits
        # Only the draw is masked: the log-probabilities stay the model's own.
        chosen = next_tokens(
            permitted_only(logits, [row.call.mask for row in rows]),
            [row.temperature for row in rows],
            [row.top_p for row in rows],
            [row.uniform for row in rows],
        )
        most = min(max(row.alternatives or 0 for row in rows), logits.shape[-1])
        logprob, ids, logprobs = log_probabilities(logits, chosen, most)
        ended = self._append(chosen.tolist(), logprob.tolist(), ids.cpu().numpy(), logprobs.cpu().numpy())
        ended_places = set(ended)
        staying = [place for place in range(len(rows)) if place not in ended_places]
        self._leave(ended)
        if staying:
            self._batch.advance(chosen[staying])

    def _append(self, tokens: list[int], logprob: list[float], ids: IntTable, logprobs: FloatTable) -> list[int]:
        """Append each row's token; returns the indices of rows that end with it."""
        ended = []
        for place, row in enumerate(self._batch.rows):
            token = tokens[place]
            if math.isnan(logprob[place]):
                row.call.fail(ModelError("server", "the model's probabilities are not numbers: damaged weights?"))
            elif token in self._weights.ends and row.call.mask is None:
                row.finish("stop", self._pieces)
            elif self._continues(row, token, logprob[place], ids[place], logprobs[place]):
                continue
            ended.append(place)
        return ended

    def _continues(self, row: SequenceState, token: int, logprob: float, ids: IntTable, logprobs: FloatTable) -> bool:
        """Append a row's token and return whether the row continues; a finished reply is delivered."""
        try:
            reason = row.add(token, logprob, ids, logprobs)
        except ModelError as error:
            row.call.fail(error)
            return False
        if reason:
            row.finish(reason, self._pieces)
        return not reason

    def _leave(self, places: list[int]) -> None:
        if places:
            ended_places = set(places)
            self._batch.keep([place for place in range(len(self._batch.rows)) if place not in ended_places])

    def _fits(self, joining: list[SequenceState], row: SequenceState) -> bool:
        together = [*self._batch.rows, *joining, row]
        if len(together) > 1 and len(together) * max(one.most_tokens for one in together) > MOST_TOKENS:
            return False
        read = (len(joining) + 1) * max(len(one.prompt) for one in (*joining, row))
        return not joining or read <= MOST_READ

    def _next_row(self, next_call: Callable[[], GenerationRequest | None]) -> SequenceState | None:
        """Next call with a valid prompt; calls without one fail."""
        while (call := next_call()) is not None:
            if call.reply.cancelled():
                continue
            try:
                return self._row(call)
            except ModelError as error:
                call.fail(error)
            except Exception as error:
                call.fail(_computing(error))
        return None

    def _row(self, call: GenerationRequest) -> SequenceState:
        prompt = self._prompts.encode(call.messages)
        limit = call.decoding.max_tokens
        if self._weights.longest is not None:
            limit = min(limit, self._weights.longest - len(prompt))
        if limit < 1:
            message = f"the prompt has {len(prompt)} tokens, the model takes {self._weights.longest} with the reply"
            raise ModelError("context_length", message)
        return SequenceState(call, prompt, limit, uniforms(call.digest, limit))


def _fail(rows: list[SequenceState], error: Exception) -> None:
    for row in rows:
        row.call.fail(_computing(error))


def _computing(error: Exception) -> ModelError:
    return ModelError("server", plain(f"{type(error).__name__}: {error}"))
