"""What an agent knows of a reply, as columns of the record."""

from __future__ import annotations

import time
from typing import Any

from moot.actors.attempt import Attempt
from moot.actors.early_stop import CUT, REPETITION
from moot.actors.record.rows import SaveTokens, image_hashes, messages_json, reading, token_columns


def reply_row(
    attempt: Attempt, suffix: str, save_tokens: SaveTokens, *, save_reasoning: bool = False
) -> dict[str, Any]:
    """The columns that say what was asked, what came back, and what it used.

    Args:
        attempt: the ask; its reply may be None.
        suffix: put to path and ids of a reply that does not end its ask.
        save_tokens: how much of the token log-probabilities is recorded.
        save_reasoning: whether hidden reasoning is recorded.
    """
    ask, decoding, unconfirmed = attempt.ask, attempt.decoding, attempt.unconfirmed
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
        "waited_s": attempt.deadline.stood_still_s if attempt.deadline is not None else 0.0,
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
            "reading": reading(by_prefix=attempt.by_prefix, from_reasoning=reply.from_reasoning),
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
    if unconfirmed.attempts:
        row |= {
            "unconfirmed_attempts": unconfirmed.attempts,
            "unconfirmed_tokens_max": unconfirmed.tokens_at_most,
        }
    return row
