"""Identity of embedded texts, by which the record stores their vectors and events refer to them."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b


def text_hash(text: str) -> str:
    """Hash of an embedded text: 32 hex digits, BLAKE2b with 16 bytes of the text's UTF-8 form; not normalised.

    >>> text_hash("Can penguins fly?")
    '0a7b042e3098b36f712b46e4dd7d754a'
    """
    return blake2b(text.encode(), digest_size=16).hexdigest()


def text_hashes(texts: Iterable[str]) -> list[str]:
    """Hash of each text, see `text_hash`."""
    return [text_hash(text) for text in texts]
