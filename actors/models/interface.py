"""What every model backend offers, and what it declares about itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from moot.protocols.messages import Decoding, Message, Usage


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do; checked before a run starts.

    Attributes:
        max_alternatives: largest `top_logprobs` it takes; 0 when it gives no log-probabilities.
        logprob_stage: whether probabilities are before or after temperature.
        images: whether messages may carry pictures.
        simulated: whether its replies come from a random model and must be labelled so.
    """

    max_alternatives: int = 0
    logprob_stage: Literal["before", "after", "unknown"] = "unknown"
    images: bool = False
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Log-probabilities of one reply of T tokens with K alternatives each.

    Attributes:
        tokens: the T tokens; joined they give the reply's text.
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
class ModelReply:
    """What a backend returns for one call.

    Attributes:
        text: the reply; may be empty.
        finish_reason: `stop`, `length`, `content_filter` or the server's own word.
        tokens: log-probabilities; None when none were asked for or given.
        http_attempts: requests that were sent, retries included.
    """

    text: str
    finish_reason: str
    usage: Usage
    tokens: TokenLogprobs | None = None
    http_attempts: int = 1


class Model(Protocol):
    """A language model. One instance serves many debates at once; `complete` may be cancelled at any await."""

    name: str
    capabilities: Capabilities

    async def complete(self, messages: Sequence[Message], decoding: Decoding, *, step_key: str) -> ModelReply:
        """One reply. `step_key` identifies the step, so that a server can count and a simulation can seed.

        Raises:
            ModelError: with the kind of failure and whether another attempt can help.
        """
        ...

    async def check(self) -> None:
        """Raise a `UserError` if the model cannot be used (no key, not reachable); costs nothing."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class ModelError(Exception):
    """A call failed.

    Args:
        kind: one of `AskFailed`'s kinds.
        message: what the server said, without any secret.
        retry_after_s: what the server asked us to wait; None when it did not say.
    """

    def __init__(self, kind: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(kind, message, retry_after_s)
        self.kind, self.message, self.retry_after_s = kind, message, retry_after_s

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"
