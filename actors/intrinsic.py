"""What the token probabilities of a reply say of its answer, for the asker and for the record."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import numpy as np

from moot.actors.models.interface import ModelReply, TokenLogprobs
from moot.actors.models.token_alignment import UNALIGNED, text_start
from moot.metrics.answer_probability import answer_probability
from moot.protocols.labels import surface_forms
from moot.protocols.messages import Ask, Intrinsic

_ANSWER_VALUE = re.compile(r'"answer"\s*:\s*"?')


Stage = Literal["before", "after", "masked", "unknown"]
"""Whether log-probabilities are taken before or after temperature and top-p, or after a schema's mask: tokens that the
schema forbids have none then, and the only token that it permits has a probability of 1."""


_CERTAIN = 1.0 - 1e-6
"""From here on a probability behind a mask says that there was no choice."""


def logprob_stage(reply: ModelReply, stage: Stage) -> Stage:
    """Where log-probabilities were taken: `stage`, the model's own, unless a replayed reply brings another."""
    return reply.replayed.logprob_stage if reply.replayed else stage


def mean_surprisal(tokens: TokenLogprobs) -> float | None:
    """Mean of -logprob over a reply's tokens, in nats; None when no token has one."""
    known = tokens.logprob[np.isfinite(tokens.logprob)]
    return max(0.0, -float(known.mean())) if known.size else None


def intrinsic_of(reply: ModelReply | None, answer: str | None, ask: Ask, stage: Stage) -> Intrinsic | None:
    """The answer's probability, read at the answer's token.

    Args:
        reply: as the model gave it.
        answer: the label that was read from it.
        ask: what was asked.
        stage: where the model takes its probabilities; a replayed reply brings its own.

    Returns:
        None when there are no log-probabilities or no closed set of labels.
    """
    if reply is None or reply.tokens is None or not ask.labels or answer is None:
        return None
    stage = logprob_stage(reply, stage)
    places = list(_ANSWER_VALUE.finditer(reply.text))
    if len(places) != 1:
        return Intrinsic(stage=stage, reason=f"the reply has {len(places)} `answer` keys, not one, to look at")
    tokens = reply.tokens
    start = text_start(tokens.tokens, reply.text)
    if start is None:
        return Intrinsic(stage=stage, reason=UNALIGNED)
    known = answer_probability(
        tokens.tokens,
        tokens.logprob,
        tokens.alt_tokens,
        tokens.alt_logprob,
        start + places[0].end(),
        surface_forms(ask.labels, ask.choices, ask.aliases),
    )
    if stage == "masked" and known.raw is not None and known.raw >= _CERTAIN:
        return Intrinsic(stage=stage, reason="its schema permits nothing else at the answer's first token")
    masked = stage == "masked"  # what is left by a mask is a share of the permitted labels, and no raw probability
    return Intrinsic(
        normalised=known.normalised,
        printed=None if masked else known.printed,
        raw=None if masked else known.raw,
        bound_shift=None if math.isnan(known.bound_shift) else known.bound_shift,
        stage=stage,
        reason=known.reason,
    )


def intrinsic_columns(intrinsic: Intrinsic | None) -> dict[str, Any]:
    """The same as columns of the reply's row."""
    if intrinsic is None:
        return {}
    return {
        "p_normalised": intrinsic.normalised,
        "p_printed": intrinsic.printed,
        "p_raw": intrinsic.raw,
        "p_bound_shift": intrinsic.bound_shift,
        "p_reason": intrinsic.reason,
    }
