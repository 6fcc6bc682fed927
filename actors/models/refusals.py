"""Refused settings: which setting a server's error says that it does not take, and what it would take instead."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OUT_OF_TOKENS = "output limit was reached"
"""What OpenAI's 400 says of a reply that was still hidden reasoning at the end of its tokens."""

_NO_SYSTEM = re.compile(
    r"system[^{}\[\]]{0,40}not supported|not support[^{}\[\]]{0,40}system|only user and assistant|must alternate"
)
"""What chat templates and servers say of a system message that they do not know; not one that is only quoted."""

_BOUND = re.compile(
    r"too (?:many|large|high)|exceed|greater than|less than|at most|no more than|up to|max|between|range|[<≤>≥]"
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]*\w)")
_STATUS = re.compile(r"^HTTP \d+\W*")


def refuses_system(message: str) -> bool:
    """Whether the error says that the chat template knows no system message."""
    return _NO_SYSTEM.search(message.lower()) is not None


def is_out_of_tokens(message: str) -> bool:
    """Whether the error says that the model was still thinking when its tokens ended."""
    return _OUT_OF_TOKENS in message.lower()


def refuses_response_format(message: str) -> bool:
    """Whether a server's 400 is about the `response_format`, going by its words.

    >>> refuses_response_format("Invalid parameter: 'response_format' of type 'json_schema' is not supported")
    True
    """
    said = message.lower()
    return names_response_format(message) or any(word in said for word in ("schema", "enum", "grammar"))


def names_response_format(message: str) -> bool:
    """Whether a message speaks of the `response_format` by a name of it, whatever else it speaks of."""
    said = message.lower()
    words = ("response_format", "response format", "text.format", "json_schema", "structured output")
    return any(word in said for word in words)


def names_logprobs(message: str) -> bool:
    """Whether the error speaks of log-probabilities, or of `include`, by which the Responses API is asked for them."""
    return "logprob" in message.lower() or bool(named_settings(message, ["include"]))


def most_alternatives(message: str, asked: int) -> int | None:
    """How many alternatives per token the server would give, going by an error that speaks of log-probabilities.

    Args:
        message: what the server said.
        asked: how many were asked for.

    Returns:
        Fewer than `asked` and at least 1; None where the error is about something else than their number.

    >>> most_alternatives("HTTP 400: Invalid value for 'top_logprobs': must be between 0 and 5, got 20.", 20)
    5
    >>> most_alternatives("HTTP 400: top_logprobs is too large", 5)
    1
    >>> most_alternatives("HTTP 400: logprobs are not supported", 5) is None
    True
    """
    said = _STATUS.sub("", message)
    if _BOUND.search(said.lower()) is None:
        return None
    fewer = [number for number in map(int, _NUMBER.findall(said)) if 0 < number < asked]
    return max(fewer, default=1 if asked > 1 else None)


def named_settings(message: str, names: Iterable[str]) -> list[str]:
    """Which of these settings the error names; not those in a request that it quotes.

    >>> named_settings("Unsupported parameter: 'top_p'; the input was {'temperature': 0.3}", ["temperature", "top_p"])
    ['top_p']
    >>> named_settings("could not store it: {'store': False, 'input': 'Hi'}", ["store"])
    []
    """
    return [name for name in names if re.search(_pattern(name), message)]


def _as_setting(word: str) -> str:
    """A pattern of a name that is a word of prose, too."""
    return rf"(?<=['\"`]){word}(?=['\"`])|(?:parameters?|arguments?|fields?)(?: supplied)?:? {word}"


_WORDS = {
    "reasoning_effort": rf"reasoning[_.]effort|{_as_setting('reasoning')}",  # the Responses API has it in `reasoning`
    "stop": rf"{_as_setting('stop')}|stop sequences?",
    "store": _as_setting("store"),
    "include": r"(?<=['\"`])include(?=['\"`])",
}


def _pattern(name: str) -> str:
    return rf"(?<!\w)(?:{_WORDS.get(name, re.escape(name))})(?!\w)(?!['\"]\s*:\s)"
