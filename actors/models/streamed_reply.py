"""Streamed reply as a whole: its pieces joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moot.actors.models.hidden_reasoning import split_reasoning
from moot.actors.models.interface import ModelReply, RateHeaders, StreamPiece, TokenLogprobs
from moot.actors.models.token_logprobs import without_reasoning
from moot.protocols.messages import Usage


def joined_reply(pieces: Sequence[StreamPiece], stopped: str = "") -> ModelReply:
    """Joins the pieces of a streamed reply.

    Args:
        pieces: in order.
        stopped: finish reason of a reply that was stopped early; empty for another.
    """
    ended = next((piece.finish_reason for piece in pieces if piece.finish_reason), "stop")
    usage = next((piece.usage for piece in reversed(pieces) if piece.usage is not None), None)
    limits: RateHeaders | None = next((piece.limits for piece in pieces if piece.limits is not None), None)
    reply = split_reasoning("".join(piece.text for piece in pieces), "".join(piece.reasoning for piece in pieces))
    overlong = bool(pieces) and pieces[-1].overlong
    if overlong:
        usage = pieces[-1].usage  # what earlier pieces count is not all
    return ModelReply(
        text=reply.text,
        finish_reason=stopped or ended,
        usage=Usage() if stopped or usage is None else usage,
        tokens=None if overlong else without_reasoning(_tokens(pieces), reply.text, reply.reasoning),
        limits=limits,
        reasoning=reply.reasoning,
        from_reasoning=reply.from_reasoning or any(piece.from_reasoning for piece in pieces),
        overlong=overlong,
        server=next((piece.server for piece in pieces if piece.server), ""),
        served_model=next((piece.served_model for piece in pieces if piece.served_model), ""),
    )


def _tokens(pieces: Sequence[StreamPiece]) -> TokenLogprobs | None:
    """Tokens of all pieces; None when a part of the text came without."""
    if any(piece.text and piece.tokens is None for piece in pieces):
        return None
    found = [piece.tokens for piece in pieces if piece.tokens is not None and piece.tokens.tokens]
    if not found:
        return None
    return TokenLogprobs(
        tokens=[token for part in found for token in part.tokens],
        logprob=np.concatenate([part.logprob for part in found]),
        alt_tokens=[token for part in found for token in part.alt_tokens],
        alt_logprob=np.concatenate([part.alt_logprob for part in found]),
    )
