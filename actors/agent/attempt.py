"""Attempt: an agent's state of one ask in progress, and the row of its reply."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from moot.actors.agent.request_fingerprint import sent_decoding
from moot.actors.agent.roles import RoleBinding
from moot.actors.limits.deadline import Deadline
from moot.actors.models.early_stop import CUT, REPETITION
from moot.actors.models.interface import ModelReply, ReplySchema
from moot.actors.models.usage_totals import UsageTotals
from moot.actors.record.rows import LENGTH, SaveTokens, image_hashes, messages_json, reading_marks, token_columns
from moot.actors.telemetry.telemetry import NO_SPAN, Span
from moot.protocols.errors import IGNORES_LIMIT, RAISE_MAX_TOKENS, TRUNCATED, UNCONSTRAINED
from moot.protocols.messages import Ask, Decoding, Message, Usage
from moot.protocols.replies import FreeText
from moot.protocols.reply_ids import load_reply


@dataclass(slots=True, eq=False)
class Attempt:
    """State of one ask in progress.

    Args:
        ask: the ask.
        binding: of its role.
        reply_id: id of the expected reply.
        span: trace span of the ask.

    Attributes:
        used: by attempts that no recorded row counts yet.
    """

    ask: Ask
    binding: RoleBinding
    reply_id: str
    span: Span = NO_SPAN
    decoding: Decoding = field(init=False)
    stopped: bool = False
    readings: tuple[str, ...] = ()
    prompt_cut: bool = False
    at: float = field(default_factory=time.time)
    started: float = field(default_factory=time.perf_counter)
    messages: tuple[Message, ...] = ()
    reply: ModelReply | None = None
    usage_before: Usage | None = None
    reasked: tuple[str, str] | None = None
    schema: ReplySchema | None = None
    deadline: Deadline | None = None
    used: UsageTotals = field(default_factory=UsageTotals)

    def __post_init__(self) -> None:
        self.decoding = sent_decoding(self.binding, self.ask.decoding)
        if self.binding.early_stop is not None and self.decoding.top_logprobs is None:
            self.decoding = msgspec.structs.replace(self.decoding, top_logprobs=1)

    @property
    def is_free(self) -> bool:
        """Whether nothing can be billed: no reply arrived, and no attempt was worked on."""
        came = self.reply is not None or self.usage_before is not None or self.stopped
        return not came and not self.used.unconfirmed_attempts


def reply_row(
    attempt: Attempt, suffix: str, save_tokens: SaveTokens, *, save_reasoning: bool = False
) -> dict[str, Any]:
    """Columns of a reply's row: request, reply and usage.

    Args:
        attempt: the ask; its reply may be None.
        suffix: appended to path and ids of a reply that does not end its ask.
        save_tokens: how much of the token log-probabilities is recorded.
        save_reasoning: whether hidden reasoning is recorded.
    """
    ask, decoding, used = attempt.ask, attempt.decoding, attempt.used
    row: dict[str, Any] = {
        "case_id": ask.case_id,
        "attempt": ask.attempt,
        "path": ask.path + suffix,
        "reply_id": attempt.reply_id + suffix,
        "role": ask.role,
        "template": ask.template,
        "fingerprint": ask.fingerprint,
        "sample": ask.sample,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_tokens": decoding.max_tokens,
        "messages": messages_json(attempt.messages),
        "image_hashes": image_hashes(ask.images),
        "supersedes": ask.supersedes + suffix if ask.supersedes else None,
        "latency_s": time.perf_counter() - attempt.started,
        "waited_s": attempt.deadline.paused_s if attempt.deadline is not None else 0.0,
        "at": attempt.at,
    }
    if (reply := attempt.reply) is not None:
        row |= token_columns(reply.tokens, save_tokens)
        row |= {
            "text": reply.text,
            "finish_reason": reply.finish_reason,
            "prompt_tokens": reply.usage.prompt_tokens,
            "completion_tokens": reply.usage.completion_tokens,
            "reasoning_tokens": reply.usage.reasoning_tokens,
            "reasoning": (reply.reasoning or None) if save_reasoning else None,
            "reading": reading_marks(
                attempt.readings,
                from_reasoning=reply.from_reasoning,
                prompt_cut=reply.prompt_cut,
                overlong=reply.overlong,
                without_logprobs=reply.without_logprobs,
            ),
            "http_attempts": reply.http_attempts,
            "reused_from": reply.replayed.source if reply.replayed else None,
        }
        if reply.stated is not None:
            row |= {
                "prompt_tokens_stated": reply.stated.prompt_tokens,
                "completion_tokens_stated": reply.stated.completion_tokens,
            }
        if reply.finish_reason in (CUT, REPETITION) and reply.tokens is not None:
            row["completion_tokens_estimate"] = len(reply.tokens.tokens)
    if used.unconfirmed_attempts:
        row |= {
            "unconfirmed_attempts": used.unconfirmed_attempts,
            "unconfirmed_tokens_max": used.unconfirmed_tokens_max,
        }
    return row


_CONSTRAINS_NONE = (
    "the trial calls found no schema that constrains its replies: another model or server may support one"
)


def unparsable_failure(reply: ModelReply, attempt: Attempt, error: str, *, may_constrain: bool) -> str:
    """Failure message of an ask whose last reply could not be parsed.

    Args:
        reply: of the model.
        attempt: the ask.
        error: why the text could not be parsed.
        may_constrain: whether the reply was unconstrained although the backend may constrain it to a schema.
    """
    if reply.replayed is not None and reply.replayed.error:
        return reply.replayed.error
    if reply.overlong:
        return f"longer than {attempt.decoding.max_tokens:,} tokens can be, and cut: {IGNORES_LIMIT}"
    if reply.finish_reason == LENGTH:
        return f"{TRUNCATED}{attempt.decoding.max_tokens}{_truncation_remedy(reply, attempt)}"
    if reply.finish_reason == REPETITION:
        return f"the reply repeated itself and was stopped: another model may not ({error})"
    if _is_all_hidden(reply):
        return f"the reply was all hidden reasoning ({error})"
    if may_constrain and load_reply(attempt.ask.reply) is not FreeText:
        return f"{error} ({_CONSTRAINS_NONE if _constrains_none(attempt) else UNCONSTRAINED})"
    return error


def _truncation_remedy(reply: ModelReply, attempt: Attempt) -> str:
    if not _is_all_hidden(reply):
        return f": {RAISE_MAX_TOKENS}"
    profile = attempt.binding.profile
    knows = profile is not None and profile.reasons
    remedy = "raise the role's reasoning_tokens, or lower its reasoning_effort" if knows else RAISE_MAX_TOKENS
    return f", all of it hidden reasoning: {remedy}"


def _is_all_hidden(reply: ModelReply) -> bool:
    """Whether the reply is all hidden reasoning; a server may count it and show none of it."""
    return not reply.text.strip() and bool(reply.reasoning or reply.usage.reasoning_tokens)


def _constrains_none(attempt: Attempt) -> bool:
    """Whether the trial calls found that the model constrains no replies."""
    structured, profile = attempt.binding.structured, attempt.binding.profile
    return structured is None and profile is not None and profile.mode_of(attempt.ask.reply)[0] == "free"
