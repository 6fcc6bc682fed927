"""Replies that the simulated server garbles on purpose."""

from __future__ import annotations

from dataclasses import replace

from moot.actors.models.interface import ModelReply, TokenLogprobs
from moot.actors.models.simulated.draws import stable_uniform
from moot.protocols.messages import Usage

_TORN_SHARE = 0.7


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
