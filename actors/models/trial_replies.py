"""Trial replies: what the servers of one model replied to one trial call; the model has what all of them have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np

from moot.actors.models.interface import ModelReply, ReplySchema
from moot.actors.models.token_logprobs import ConstrainedStage, constrained_logprob_stage, text_start
from moot.protocols.messages import Usage

TrialReplies = Mapping[str, ModelReply]
"""Replies to one trial call by the server's name; of a model that is no pool, one."""


def without_alternatives(replies: TrialReplies) -> list[str]:
    """Servers whose reply has no log-probabilities with alternatives."""
    return [server for server, reply in replies.items() if not _has_alternatives(reply)]


def _has_alternatives(reply: ModelReply) -> bool:
    return reply.tokens is not None and bool(np.isfinite(reply.tokens.alt_logprob).any())


def alternatives_by_server(replies: TrialReplies) -> dict[str, int]:
    """Most alternatives of one token by server; only servers that list some."""
    counts = {
        server: int(np.isfinite(reply.tokens.alt_logprob).sum(axis=1).max(initial=0))
        for server, reply in replies.items()
        if reply.tokens is not None
    }
    return {server: count for server, count in counts.items() if count}


def deviation_from_schema(replies: TrialReplies, schema: ReplySchema) -> str:
    """Why the servers do not constrain replies to a schema: the first reply that does not follow it; empty for none."""
    for server, reply in replies.items():
        if not _follows_schema(reply, schema):
            return f"{server if len(replies) > 1 else 'it'} accepts a schema and replies {reply.text.strip()[:60]!r}"
    return ""


def _follows_schema(reply: ModelReply, schema: ReplySchema) -> bool:
    """Whether a reply begins as the schema requires; an empty one, all hidden reasoning, counts as constrained."""
    text = reply.text.lstrip()
    names = msgspec.json.decode(schema.body)["properties"]
    return not text or (text.startswith("{") and any(f'"{name}"' in text for name in names))


def stage_of_reply(reply: ModelReply) -> ConstrainedStage:
    """Stage of a constrained reply's log-probabilities; see `constrained_logprob_stage`.

    Hidden reasoning is no evidence: the mask begins after it.
    """
    if reply.tokens is None:
        return "unknown"
    thought = bool(reply.reasoning or reply.usage.reasoning_tokens)
    if thought and text_start(reply.tokens.tokens, reply.text) != 0:
        return "unknown"
    return constrained_logprob_stage(reply.tokens)


def reply_differences(replies: TrialReplies) -> Iterator[str]:
    """What the servers of a pool do differently without an effect on the requests, as phrases.

    >>> one, other = (ModelReply("Yes", "stop", Usage(3, 1), served_model=name) for name in ("m b1", "m b2"))
    >>> list(reply_differences({"http://a": one, "http://b": other}))
    ['they reply as different models: m b1 at http://a, m b2 at http://b']
    """
    named = {server: reply.served_model for server, reply in replies.items() if reply.served_model}
    if len(set(named.values())) > 1:
        said = ", ".join(f"{name} at {server}" for server, name in named.items())
        yield f"they reply as different models: {said}"
    silent = [server for server, reply in replies.items() if reply.usage == Usage()]
    if silent and len(silent) < len(replies):
        yield f"no usage is reported, so that tokens and cost are unknown: {', '.join(silent)}"
