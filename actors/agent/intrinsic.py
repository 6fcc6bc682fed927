"""Intrinsic confidence: probability of a reply's answer under the model's own token probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from moot.actors.models.interface import ModelReply, TokenLogprobs
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.sampling import NO_CHOICE, may_be_masked
from moot.actors.models.token_logprobs import UNALIGNED, text_start
from moot.metrics.answer_probability import answer_probability
from moot.protocols.messages import Ask, Intrinsic, LogprobStage
from moot.protocols.reply_ids import load_reply
from moot.protocols.reply_json import answer_start
from moot.protocols.reply_parsing import plain_answer_start
from moot.protocols.text.labels import surface_forms


def stage_of(declared: LogprobStage, profile: ModelProfile | None, *, constrained: bool) -> LogprobStage:
    """Sampling stage at which the log-probabilities of a reply are taken.

    Args:
        declared: by the backend; takes precedence.
        profile: result of the trial calls; None for a model without any.
        constrained: whether the reply is constrained to a schema; only a constrained reply can be masked.

    >>> stage_of("unknown", ModelProfile(schemas="vllm", held_logprobs="masked"), constrained=True)
    'masked'
    >>> stage_of("unknown", ModelProfile(schemas="vllm", held_logprobs="masked"), constrained=False)
    'raw'
    """
    if declared != "unknown" or profile is None or profile.held_logprobs is None:
        return declared
    return profile.held_logprobs if constrained else "raw"


def logprob_stage(reply: ModelReply, stage: LogprobStage) -> LogprobStage:
    """Sampling stage of a reply's log-probabilities: `stage`, of the model, unless a replayed reply states another."""
    return reply.replayed.logprob_stage if reply.replayed else stage


def was_constrained(reply: ModelReply, constrained: bool) -> bool:
    """Whether a reply was constrained to a schema: as this ask, unless a replayed reply states otherwise."""
    return reply.replayed.constrained if reply.replayed else constrained


def mean_surprisal(tokens: TokenLogprobs, stage: LogprobStage, *, constrained: bool) -> float | None:
    """Mean surprisal: mean of -logprob over a reply's tokens, in nats; None when no token has one, or a schema's mask
    may have changed them.

    One histogram contains the values of all replies of a model, constrained or not.
    """
    if may_be_masked(stage, constrained):
        return None
    known = tokens.logprob[np.isfinite(tokens.logprob)]
    return max(0.0, -float(known.mean())) if known.size else None


def intrinsic_of(
    reply: ModelReply | None, answer: str | None, ask: Ask, stage: LogprobStage, *, constrained: bool = False
) -> Intrinsic | None:
    """Probability of the answer, read at the answer's token.

    Args:
        reply: of the model.
        answer: the label parsed from it.
        ask: the ask.
        stage: sampling stage of the model's log-probabilities; a replayed reply has its own.
        constrained: whether the reply was constrained to a schema; a replayed reply has its own.

    Returns:
        None when there are no log-probabilities or no closed set of labels.
    """
    if reply is None or reply.tokens is None or not ask.labels or answer is None:
        return None
    stage = logprob_stage(reply, stage)
    place = _answer_start(reply.text, ask)
    if place is None:
        return Intrinsic(stage=stage, reason="the place of `answer` in the reply is not certain")
    tokens = reply.tokens
    start = text_start(tokens.tokens, reply.text)
    if start is None:
        return Intrinsic(stage=stage, reason=UNALIGNED)
    known = answer_probability(
        tokens.tokens,
        tokens.logprob,
        tokens.alt_tokens,
        tokens.alt_logprob,
        start + place,
        surface_forms(ask.labels, ask.choices, ask.aliases),
    )
    if known.label not in (None, answer):
        return Intrinsic(stage=stage, reason="the answer's tokens spell another label than the answer that was read")
    if (
        may_be_masked(stage, was_constrained(reply, constrained))
        and known.raw is not None
        and known.raw >= math.exp(NO_CHOICE)
    ):
        return Intrinsic(stage=stage, reason="its schema may permit nothing else at the answer's first token")
    masked = stage == "masked"  # renormalised over the permitted labels, so no raw probability
    return Intrinsic(
        normalised=known.normalised,
        printed=None if masked else known.printed,
        raw=None if masked else known.raw,
        bound_shift=None if math.isnan(known.bound_shift) else known.bound_shift,
        stage=stage,
        reason=known.reason,
    )


def _answer_start(text: str, ask: Ask) -> int | None:
    """Offset of the answer in a reply's text; None where it is not certain."""
    model = load_reply(ask.reply)
    place = answer_start(text, model) if "{" in text or not ask.plain else None
    if place is None and ask.plain:
        place = plain_answer_start(text, model, ask.labels, ask.choices, ask.aliases)
    return place


def intrinsic_columns(intrinsic: Intrinsic | None) -> dict[str, Any]:
    """Columns of the reply's row for its intrinsic confidence."""
    if intrinsic is None:
        return {}
    return {
        "p_normalised": intrinsic.normalised,
        "p_printed": intrinsic.printed,
        "p_raw": intrinsic.raw,
        "p_bound_shift": intrinsic.bound_shift,
        "p_reason": intrinsic.reason,
    }
