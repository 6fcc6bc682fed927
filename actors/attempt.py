"""What an agent knows of one ask while it answers it."""

from __future__ import annotations

import time

import msgspec

from moot.actors.deadline import Deadline
from moot.actors.limits.admitted import Unconfirmed
from moot.actors.models.interface import ModelReply
from moot.actors.models.reply_schema import ReplySchema
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import sent_decoding
from moot.actors.tracing import NO_SPAN, Span
from moot.protocols.messages import Ask, Message, Usage


class Attempt:
    """What is known of one ask while it is answered.

    Args:
        ask: the ask.
        binding: its role's.
        reply_id: of the reply to come.
        span: of the ask.
    """

    __slots__ = (
        "ask",
        "at",
        "binding",
        "by_prefix",
        "deadline",
        "decoding",
        "messages",
        "reasked",
        "reply",
        "reply_id",
        "schema",
        "span",
        "started",
        "stopped",
        "unconfirmed",
        "usage_before",
    )

    def __init__(self, ask: Ask, binding: RoleBinding, reply_id: str, span: Span = NO_SPAN) -> None:
        self.ask, self.binding, self.reply_id, self.span = ask, binding, reply_id, span
        self.decoding = sent_decoding(binding, ask.decoding)
        if binding.early_stop is not None and self.decoding.top_logprobs is None:
            self.decoding = msgspec.structs.replace(self.decoding, top_logprobs=1)
        self.stopped = self.by_prefix = False
        self.at, self.started = time.time(), time.perf_counter()
        self.messages: tuple[Message, ...] = ()
        self.reply: ModelReply | None = None
        self.usage_before: Usage | None = None
        self.reasked: tuple[str, str] | None = None
        self.schema: ReplySchema | None = None
        self.deadline: Deadline | None = None
        self.unconfirmed = Unconfirmed()

    @property
    def is_free(self) -> bool:
        """Whether nothing can be billed: no reply has come, and no attempt was worked on."""
        came = self.reply is not None or self.usage_before is not None or self.stopped
        return not came and not self.unconfirmed.attempts
