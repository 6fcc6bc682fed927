"""Refused settings: which setting a server's error rejects, and which value it would accept."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OUT_OF_TOKENS = "output limit was reached"
"""OpenAI's 400 for a reply that was still hidden reasoning at its token limit."""

_NO_SYSTEM = re.compile(
    r"system[^{}\[\]]{0,40}not supported|not support[^{}\[\]]{0,40}system|only user and assistant|must alternate"
)
"""Errors of chat templates and servers that support no system message; not a message that is only quoted."""

_BOUND = re.compile(
    r"too (?:many|large|high)|exceed|greater than|less than|at most|no more than|up to|max|between|range|[<≤>≥]"
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]*\w)")
_STATUS = re.compile(r"^(?:HTTP|the reply states error) \d+\W*")


def refuses_system(message: str) -> bool:
    """Whether the error states that the chat template supports no system message."""
    return _NO_SYSTEM.search(message.lower()) is not None


def is_out_of_tokens(message: str) -> bool:
    """Whether the error states that the tokens ended during reasoning."""
    return _OUT_OF_TOKENS in message.lower()


def refuses_response_format(message: str) -> bool:
    """Whether a server's 400 is about the `response_format`, by its words.

    >>> refuses_response_format("Invalid parameter: 'response_format' of type 'json_schema' is not supported")
    True
    """
    lowered = message.lower()
    return names_response_format(message) or any(word in lowered for word in ("schema", "enum", "grammar"))


def names_response_format(message: str) -> bool:
    """Whether a message names the `response_format`, whatever else it names."""
    lowered = message.lower()
    words = ("response_format", "response format", "text.format", "json_schema", "structured output")
    return any(word in lowered for word in words)


def names_logprobs(message: str) -> bool:
    """Whether the error names log-probabilities, or `include`, which requests them in the Responses API."""
    return "logprob" in message.lower() or bool(named_settings(message, ["include"]))


def most_alternatives(message: str, asked: int) -> int | None:
    """Maximum alternatives per token of the server, from an error that names log-probabilities.

    Args:
        message: the server's message.
        asked: requested number.

    Returns:
        Fewer than `asked` and at least 1; None where the error is about something other than their number.

    >>> most_alternatives("HTTP 400: Invalid value for 'top_logprobs': must be between 0 and 5, got 20.", 20)
    5
    >>> most_alternatives("HTTP 400: top_logprobs is too large", 5)
    1
    >>> most_alternatives("HTTP 400: logprobs are not supported", 5) is None
    True
    """
    text = _STATUS.sub("", message)
    if _BOUND.search(text.lower()) is None:
        return None
    fewer = [number for number in map(int, _NUMBER.findall(text)) if 0 < number < asked]
    return max(fewer, default=1 if asked > 1 else None)


def named_settings(message: str, names: Iterable[str]) -> list[str]:
    """Settings that the error names; not those in a request that it quotes.

    >>> named_settings("Unsupported parameter: 'top_p'; the input was {'temperature': 0.3}", ["temperature", "top_p"])
    ['top_p']
    >>> named_settings("could not store it: {'store': False, 'input': 'Hi'}", ["store"])
    []
    """
    return [name for name in names if re.search(_pattern(name), message)]


def _as_setting(word: str) -> str:
    """Pattern for a setting whose name is also an ordinary word."""
    return rf"(?<=['\"`]){word}(?=['\"`])|(?:parameters?|arguments?|fields?)(?: supplied)?:? {word}"


_WORDS = {
    "reasoning_effort": rf"reasoning[_.]effort|{_as_setting('reasoning')}",  # the Responses API has it in `reasoning`
    "stop": rf"{_as_setting('stop')}|stop sequences?",
    "store": _as_setting("store"),
    "include": r"(?<=['\"`])include(?=['\"`])",
}


def _pattern(name: str) -> str:
    return rf"(?<!\w)(?:{_WORDS.get(name, re.escape(name))})(?!\w)(?!['\"]\s*:\s)"
