"""Why a reply could not be read, and what mends that, in the words of the record."""

from __future__ import annotations

from moot.actors.attempt import Attempt
from moot.actors.early_stop import REPETITION
from moot.actors.models.interface import ModelReply
from moot.protocols.errors import NOT_HELD, TRUNCATED
from moot.protocols.replies import FreeText, load_reply

LENGTH = "length"
"""The finish reason of a reply that ended at its token limit."""


def unreadable(reply: ModelReply, attempt: Attempt, error: str, *, can_be_held: bool) -> str:
    """What ends an ask whose last reply could not be read.

    Args:
        reply: as the model gave it.
        attempt: the ask.
        error: what was wrong with the text.
        can_be_held: whether the reply was left free by a backend that can hold it to a schema.
    """
    if reply.replayed is not None and reply.replayed.error:
        return reply.replayed.error
    if reply.finish_reason == LENGTH:
        thought = ", all of it hidden reasoning" if reply.reasoning and not reply.text.strip() else ""
        return f"{TRUNCATED}{attempt.decoding.max_tokens}{thought}: raise max_tokens"
    if reply.finish_reason == REPETITION:
        return f"the reply repeated itself and was stopped: another model may not ({error})"
    if reply.reasoning and not reply.text.strip():
        return f"the reply was all hidden reasoning ({error})"
    if can_be_held and load_reply(attempt.ask.reply) is not FreeText:
        return f"{error} ({NOT_HELD})"
    return error
