"""Finish reasons of all vendors: which state that there is no answer, and why."""

from __future__ import annotations

from typing import Any

import msgspec

from moot.actors.models.interface import ModelError
from moot.actors.models.openai_errors import plain
from moot.actors.models.wire_json import decode_json

_FILTERED = frozenset(
    (
        *("content_filter", "content_filtered", "safety", "recitation", "blocklist", "prohibited_content", "spii"),
        *("language", "image_safety", "image_prohibited_content", "image_recitation", "model_armor"),
        *("guardrail_intervened", "sensitive", "blocked", "error_toxic"),
    )
)
"""Words of OpenAI, Azure, Gemini, Bedrock, Zhipu and Cohere for a reply that a filter stopped."""

_REFUSED = frozenset(("refusal", "refused"))
_BROKEN = frozenset(
    (
        *("error", "failed", "failure", "network_error", "server_error", "internal_error", "timeout"),
        *("insufficient_system_resource", "abort", "aborted", "cancelled", "canceled"),
    )
)
"""Words of OpenRouter, Mistral, vLLM, SGLang, DeepSeek and Zhipu for a reply that broke off."""

_LONGEST = 64
"""Most characters of a server's own word."""

_LENGTH = frozenset(("max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"))


def known_finish(finish: str | None) -> str:
    """Finish reason in terms of OpenAI: `length` for each vendor's word for it, else the server's own word.

    >>> known_finish("MAX_TOKENS"), known_finish("eos"), known_finish(None)
    ('length', 'eos', '')
    """
    return "length" if _word(finish) in _LENGTH else (finish or "")[:_LONGEST]


def finish_failure(finish: str | None, key: str | None = None) -> ModelError | None:
    """Failure that a finish reason states, with the server's word; None where the reply ended in another way.

    Args:
        finish: the reason as sent.
        key: the API key in use, kept out of the message.

    >>> str(finish_failure("content_filter: PROHIBITED_CONTENT"))
    "content_filter: the reply was stopped by the server's content filter (content_filter: PROHIBITED_CONTENT)"
    """
    if finish in ("stop", "length", None):
        return None
    word = _word(finish)
    if word in _FILTERED:
        return filtered("" if finish == "content_filter" else str(finish), key)
    if word in _REFUSED:
        return ModelError("refused", plain(f"the model declined to answer (finish reason {finish!r})", key))
    if word in _BROKEN:
        return ModelError("server", plain(f"the reply broke off (finish reason {finish!r})", key))
    return None


def filtered(word: str = "", key: str | None = None, *, what: str = "reply") -> ModelError:
    """`ModelError` of a reply or a prompt that the server's content filter stopped.

    Args:
        word: the server's own word for it; empty for none.
        key: see `finish_failure`.
        what: what was stopped, for the message.
    """
    own = f" ({word})" if word else ""
    return ModelError("content_filter", plain(f"the {what} was stopped by the server's content filter{own}", key))


_anything: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def blocked_prompt(body: bytes, key: str | None = None) -> ModelError | None:
    """Failure of a prompt that a filter blocked, by the body of a reply without choices; None where it states none.

    Args:
        body: JSON; Azure names the filters in `prompt_filter_results`, Gemini in `promptFeedback`.
        key: see `finish_failure`.
    """
    data = decode_json(_anything, body, "JSON")
    if not isinstance(data, dict):
        return None
    results = data.get("prompt_filter_results") or data.get("prompt_annotations")
    words = [word for each in results for word in _filters(each)] if isinstance(results, list) else []
    feedback = data.get("promptFeedback") or data.get("prompt_feedback")
    if isinstance(feedback, dict):
        words += [str(word) for word in (feedback.get("blockReason"), feedback.get("block_reason")) if word]
    return filtered(", ".join(words), key, what="prompt") if words else None


def _filters(result: object) -> list[str]:
    """Names of the filters that stopped a prompt."""
    found = result.get("content_filter_results") if isinstance(result, dict) else None
    if not isinstance(found, dict):
        return []
    return [name for name, each in found.items() if isinstance(each, dict) and each.get("filtered") is True]


def _word(finish: str | None) -> str:
    """Finish reason in lower case, without what a server adds behind a colon."""
    return (finish or "").partition(":")[0].strip().lower().replace("-", "_").removeprefix("finish_reason_")
