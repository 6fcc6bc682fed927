"""Why a reply could not be read, and what mends that, in the words of the record."""

from __future__ import annotations

from moot.actors.attempt import Attempt
from moot.actors.early_stop import REPETITION
from moot.actors.models.interface import ModelReply
from moot.protocols.errors import NOT_HELD, RAISE_MAX_TOKENS, TRUNCATED
from moot.protocols.replies import FreeText, load_reply

LENGTH = "length"
"""The finish reason of a reply that ended at its token limit."""

_HOLDS_NONE = "the trial calls found no schema that it is held to: another model or server may hold it"


def unreadable(reply: ModelReply, attempt: Attempt, error: str, *, can_be_held: bool) -> str:
    """What ends an ask whose last reply could not be read.

    Args:
        reply: as the model gave it.
        attempt: the ask.
        error: what was wrong with the text.
        can_be_held: whether the reply was left free by a backend that may hold it to a schema.
    """
    if reply.replayed is not None and reply.replayed.error:
        return reply.replayed.error
    if reply.finish_reason == LENGTH:
        return f"{TRUNCATED}{attempt.decoding.max_tokens}{_cure_of_truncation(reply, attempt)}"
    if reply.finish_reason == REPETITION:
        return f"the reply repeated itself and was stopped: another model may not ({error})"
    if _is_all_hidden(reply):
        return f"the reply was all hidden reasoning ({error})"
    if can_be_held and load_reply(attempt.ask.reply) is not FreeText:
        return f"{error} ({_HOLDS_NONE if _was_tried_in_vain(attempt) else NOT_HELD})"
    return error


def _cure_of_truncation(reply: ModelReply, attempt: Attempt) -> str:
    if not _is_all_hidden(reply):
        return f": {RAISE_MAX_TOKENS}"
    profile = attempt.binding.profile
    knows = profile is not None and profile.reasons
    cure = "raise the role's reasoning_tokens, or lower its reasoning_effort" if knows else RAISE_MAX_TOKENS
    return f", all of it hidden reasoning: {cure}"


def _is_all_hidden(reply: ModelReply) -> bool:
    """Whether nothing but hidden reasoning came; a server may count it and show none of it."""
    return not reply.text.strip() and bool(reply.reasoning or reply.usage.reasoning_tokens)


def _was_tried_in_vain(attempt: Attempt) -> bool:
    """Whether the trial calls found that the model holds no replies."""
    structured, profile = attempt.binding.structured, attempt.binding.profile
    return structured is None and profile is not None and profile.way(attempt.ask.reply)[0] == "free"
