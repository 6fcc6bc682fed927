"""The ways in which the simulated server fails on purpose: server errors, rate limits and garbled replies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from moot.actors.models.interface import ModelReply, TokenLogprobs
from moot.actors.models.simulated_draws import stable_uniform
from moot.protocols.messages import Usage

_TORN_SHARE = 0.7


class RateLimit:
    """A token bucket that holds one second's worth of requests, at least one, and starts full.

    Args:
        per_minute: requests that it lets through each minute, above 0.
        now: a monotonic clock in seconds.
    """

    def __init__(self, per_minute: float, now: Callable[[], float]) -> None:
        self._per_second = per_minute / 60.0
        self._size = max(1.0, self._per_second)
        self._held, self._now, self._filled_at = self._size, now, now()

    def wait_s(self) -> float:
        """0 and one request taken from the bucket, or the seconds until it will hold one."""
        now = self._now()
        self._held = min(self._size, self._held + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        if self._held >= 1.0:
            self._held -= 1.0
            return 0.0
        return (1.0 - self._held) / self._per_second


def retry_headers(wait_s: float) -> dict[str, str]:
    """`Retry-After` in whole seconds, at least 1, and `retry-after-ms`, which OpenAI's clients prefer."""
    return {
        "Retry-After": str(max(1, math.ceil(wait_s))),
        "retry-after-ms": str(max(1, math.ceil(wait_s * 1000.0))),
    }


def is_garbled(rate: float, seed: int, step_key: str, reasks: int) -> bool:
    """Whether this reply is garbled: the same for every attempt at a step, drawn anew after a re-ask."""
    return stable_uniform(seed, "garble", step_key, reasks) < rate


def garble(reply: ModelReply, seed: int, step_key: str, reasks: int) -> ModelReply:
    """The reply with its own JSON torn off, or broken by a lost token; its tokens still join to its text.

    About seven in ten are torn. A reply of one token is left as it is.

    Args:
        reply: must have its tokens.
    """
    assert reply.tokens is not None
    tokens = reply.tokens.tokens
    if len(tokens) < 2:
        return reply
    where = stable_uniform(seed, "where", step_key, reasks)
    quotes = [place for place, token in enumerate(tokens) if '"' in token]
    if not quotes or stable_uniform(seed, "how", step_key, reasks) < _TORN_SHARE:
        kept = list(range(max(1, int(len(tokens) * (0.1 + 0.8 * where)))))
    else:
        lost = quotes[int(where * len(quotes))]
        kept = [place for place in range(len(tokens)) if place != lost]
    chosen = _only(reply.tokens, kept)
    usage = Usage(reply.usage.prompt_tokens, len(kept))
    return replace(reply, text="".join(chosen.tokens), tokens=chosen, usage=usage)


def _only(tokens: TokenLogprobs, kept: list[int]) -> TokenLogprobs:
    width = tokens.alternatives
    return TokenLogprobs(
        tokens=[tokens.tokens[place] for place in kept],
        logprob=tokens.logprob[kept],
        alt_tokens=[name for place in kept for name in tokens.alt_tokens[place * width : (place + 1) * width]],
        alt_logprob=tokens.alt_logprob[kept],
    )
