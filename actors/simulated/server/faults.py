"""Fault injection of the simulated server: a rate limit, and garbled or truncated replies."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from aiohttp import web

from moot.actors.limits.rates import TokenBucket
from moot.actors.models.interface import ModelReply, TokenLogprobs
from moot.protocols.messages import Usage
from moot.protocols.seeds import stable_uniform

_TORN_SHARE = 0.7


class RequestLimit:
    """Token bucket of one second's requests, at least one; starts full."""

    def __init__(self, per_minute: float) -> None:
        self._size = max(1.0, per_minute / 60.0)
        self._bucket = TokenBucket(per_minute, 60.0, time.monotonic(), empty=False)

    def wait_s(self) -> float:
        """Takes one request and returns 0, or the seconds until one is available."""
        if self._bucket.left(time.monotonic(), 1) < 1:
            return self._bucket.free_in(1)
        self._bucket.take(1)
        return 0.0

    def headers(self) -> dict[str, str]:
        """Rate-limit headers in OpenAI's format; the reset is the time until the bucket is full."""
        left = self._bucket.left(time.monotonic(), 1)
        return {
            "x-ratelimit-limit-requests": str(int(self._size)),
            "x-ratelimit-remaining-requests": str(left),
            "x-ratelimit-reset-requests": f"{math.ceil(self._bucket.free_in(math.ceil(self._size)) * 1000.0)}ms",
        }


def retry_headers(wait_s: float) -> dict[str, str]:
    """`Retry-After` in whole seconds, at least 1, and `retry-after-ms`, which OpenAI's clients prefer."""
    return {
        "Retry-After": str(max(1, math.ceil(wait_s))),
        "retry-after-ms": str(max(1, math.ceil(wait_s * 1000.0))),
    }


def garble(reply: ModelReply, seed: int, step_key: str, reasks: int) -> ModelReply:
    """Garbles a reply: truncated JSON (seven in ten), or a lost token; a reply of one token is unchanged."""
    assert reply.tokens is not None
    tokens, width = reply.tokens.tokens, reply.tokens.alternatives
    if len(tokens) < 2:
        return reply
    where = stable_uniform(seed, "where", step_key, reasks)
    quotes = [place for place, token in enumerate(tokens) if '"' in token]
    if not quotes or stable_uniform(seed, "how", step_key, reasks) < _TORN_SHARE:
        kept = list(range(max(1, int(len(tokens) * (0.1 + 0.8 * where)))))
    else:
        lost = quotes[int(where * len(quotes))]
        kept = [place for place in range(len(tokens)) if place != lost]
    chosen = TokenLogprobs(
        tokens=[tokens[place] for place in kept],
        logprob=reply.tokens.logprob[kept],
        alt_tokens=[name for place in kept for name in reply.tokens.alt_tokens[place * width : (place + 1) * width]],
        alt_logprob=reply.tokens.alt_logprob[kept],
    )
    return replace(reply, text="".join(chosen.tokens), tokens=chosen, usage=Usage(reply.usage.prompt_tokens, len(kept)))


async def send_truncated(request: web.Request, body: bytes) -> web.StreamResponse:
    """Sends the first half of a response with the full content length."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
