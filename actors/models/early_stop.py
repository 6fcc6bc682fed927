"""Early stopping of streamed replies: on the confidence of the first tokens, or on repetition.

The first is moot's own, not a paper's: in the source's tables, early confidence is associated with more critical
failures in some settings and with fewer in others. So window, statistic, direction and bound are learned from labelled
data, and the feature is off by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from itertools import accumulate
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from moot.actors.models.hidden_reasoning import is_thinking, may_end_thinking, split_thinking
from moot.actors.models.interface import ModelReply, ReplySchema, StreamingModel, StreamPiece
from moot.actors.models.sampling import mask_forced_tokens, may_be_masked
from moot.actors.models.streamed_reply import joined_reply
from moot.metrics.confidence_features import Statistic, window_statistic
from moot.protocols.messages import Decoding, LogprobStage, Message
from moot.protocols.text.repetition import SEEN_AT_ONCE, is_repetitive

CUT = "cut"
"""Finish reason of a reply that was stopped for its first tokens' confidence, and is asked for again."""

REPETITION = "repetition"
"""Finish reason of a reply that was stopped because it repeated itself; it is parsed like any other."""

_SHORT = 256
"""Most characters of a beginning that are looked at anew with each piece."""

_LOOKED_AT_EVERY = 64
"""Characters between two checks for repetition."""


class EarlyStop(BaseModel):
    """Early-stopping rule; learned by `moot calibrate --early-stop`.

    Attributes:
        window: number of first tokens that are evaluated; a shorter reply is never stopped.
        statistic: of their log-probabilities, see `metrics.confidence_features`.
        keep: whether replies `above` or `below` the bound are kept; at the bound they always are.
        bound: in the statistic's unit.
        resamples: how many replies to one call may be stopped; the next one is always kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: int = Field(ge=1, le=1000)
    statistic: Statistic
    keep: Literal["above", "below"]
    bound: float = Field(allow_inf_nan=False)
    resamples: int = Field(default=1, ge=1, le=10)

    @model_validator(mode="after")
    def _can_stop(self) -> EarlyStop:
        spread = self.statistic in ("range", "variance", "std", "slope")
        if spread and self.window < 2:
            raise ValueError(f"the {self.statistic} of a single token is undefined: the window must be 2 or more")
        if self.statistic in ("mean", "median", "min", "max") and self.bound > 0.0:
            raise ValueError(f"a {self.statistic} of log-probabilities is never above 0, so the bound cannot be")
        if self.statistic in ("range", "variance", "std") and self.bound < 0.0:
            raise ValueError(f"a {self.statistic} is never below 0, so the bound cannot be")
        return self

    def stops(self, logprobs: Sequence[float]) -> bool:
        """Whether to stop a reply with these first log-probabilities; False when they are unknown."""
        if len(logprobs) < self.window:
            return False
        found = float(window_statistic(logprobs[: self.window], self.statistic))
        return found < self.bound if self.keep == "above" else found > self.bound


async def stream_with_early_stop(
    model: StreamingModel,
    messages: Sequence[Message],
    decoding: Decoding,
    stop: EarlyStop,
    *,
    step_key: str,
    schema: ReplySchema | None = None,
    stage: LogprobStage,
) -> ModelReply:
    """Reads a streamed reply and may stop it. A stopped reply has the finish reason `CUT` or `REPETITION`, and no
    usage. Hidden reasoning does not count as first tokens, and is not checked for repetition.

    Args:
        model, messages, decoding, step_key, schema: see `StreamingModel.stream`.
        stop: the rule.
        stage: sampling stage of the reply's log-probabilities. Where a schema's mask may have changed them, first
            tokens of which one may have been forced never stop a reply: the rule was not learned from such tokens.

    Raises:
        ModelError: see `stream`.
    """
    pieces: list[StreamPiece] = []
    written = _PartialReply(stop, may_be_masked(stage, schema is not None))
    async with aclosing(model.stream(messages, decoding, step_key=step_key, schema=schema)) as stream:
        async for piece in stream:
            pieces.append(piece)
            why = written.add(piece)
            if why and not piece.finish_reason:
                return joined_reply(pieces, why)
    return joined_reply(pieces)


class _PartialReply:
    """Partial reply: received data for the decision whether to stop."""

    def __init__(self, stop: EarlyStop, masked: bool) -> None:
        self._stop, self._masked = stop, masked
        self._logprobs: list[float] = []
        self._decided = False
        self._start, self._buffered = "", list[StreamPiece]()
        self._may_think = True
        self._tail, self._unseen = "", 0

    def add(self, piece: StreamPiece) -> str:
        """Finish reason of a reply to stop after this piece; empty when it continues."""
        if piece.reasoning and not piece.text:
            return ""
        if not self._may_think:
            return self._seen(piece)
        before, self._start = self._start, self._start + piece.text
        self._buffered.append(piece)
        if len(before) > _SHORT and not may_end_thinking(piece.text, before):
            return ""
        if is_thinking(self._start):
            return ""
        self._may_think = False
        return next(filter(None, map(self._seen, self._of_reply())), "")

    def _of_reply(self) -> list[StreamPiece]:
        """Buffered pieces behind the hidden reasoning."""
        thought = len(self._start) - len(split_thinking(self._start)[1])
        starts = accumulate((len(piece.text) for piece in self._buffered), initial=0)
        return [piece for start, piece in zip(starts, self._buffered, strict=False) if start >= thought]

    def _seen(self, piece: StreamPiece) -> str:
        if self._too_unsure(piece):
            return CUT
        return REPETITION if self._repeats(piece.text) else ""

    def _too_unsure(self, piece: StreamPiece) -> bool:
        self._decided = self._decided or (bool(piece.text) and piece.tokens is None)  # unknown tokens
        if self._decided or piece.tokens is None:
            return False
        self._logprobs += piece.tokens.logprob.tolist()
        if len(self._logprobs) < self._stop.window:
            return False
        self._decided = True
        known = np.array(self._logprobs, np.float64)
        return self._stop.stops((mask_forced_tokens(known) if self._masked else known).tolist())

    def _repeats(self, text: str) -> bool:
        self._tail = (self._tail + text)[-SEEN_AT_ONCE:]
        self._unseen += len(text)
        if self._unseen < _LOOKED_AT_EVERY:
            return False
        self._unseen = 0
        return is_repetitive(self._tail)
