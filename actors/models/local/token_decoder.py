"""Token decoder: from token ids to text, a piece for each token, and the text of alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_PARTIAL = "\N{REPLACEMENT CHARACTER}"


class TokenDecoder:
    """Incremental decoder of one tokenizer's tokens.

    Args:
        tokenizer: of transformers.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._before: list[int] = tokenizer.encode("a", add_special_tokens=False)
        self._before_text = self._decode(self._before, special=True)
        self._alone: dict[int, str] = {}

    def of_reply(self, ids: Sequence[int]) -> list[str]:
        """Decodes a reply to one piece per token; their concatenation is the reply's text.

        A token that begins a character has an empty piece, the one that completes it has the character. An incomplete
        character at the end becomes the replacement character. Special tokens have no text.
        """
        pieces: list[str] = []
        # Decoding starts a piece early, because a token's text depends on the token before it.
        start = read = 0
        for end in range(1, len(ids) + 1):
            before, now = self._decode(ids[start:read]), self._decode(ids[start:end])
            if now.endswith(_PARTIAL) and end < len(ids):
                pieces.append("")
            elif len(now) > len(before):
                pieces.append(now[len(before) :])
                start, read = read, end
            else:
                pieces.append("")
        return pieces

    def alternative(self, token: int) -> str:
        """Text of one token inside a text; special tokens by name, partial characters as U+FFFD."""
        text = self._alone.get(token)
        if text is None:
            text = self._decode([*self._before, token], special=True).removeprefix(self._before_text)
            self._alone[token] = text
        return text

    def _decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        text: str = self._tokenizer.decode(
            list(ids), skip_special_tokens=not special, clean_up_tokenization_spaces=False
        )
        return text
