"""Encoder that counts what it is asked for, and chunks of short texts."""

from __future__ import annotations

from collections.abc import Sequence

from moot.actors.encoders.hashed_ngrams import HashedNgramEncoder
from moot.actors.encoders.interface import Rows
from moot.actors.retrieval.library import LibraryChunk
from moot.protocols.errors import EncoderFailed

NAME = "counting"
TEXTS = [f"fact number {place}" for place in range(23)]


class Counting(HashedNgramEncoder):
    """Counts the texts that it is asked for; may fail, or give vectors of another size, after some."""

    def __init__(self, *, fails_after: int | None = None, dimension: int = 16, name: str = NAME) -> None:
        super().__init__(dimension)
        self.name = name
        self.asked: list[str] = []
        self._fails_after = fails_after

    async def encode(self, texts: Sequence[str]) -> Rows:
        """See `Encoder.encode`."""
        if self._fails_after is not None and len(self.asked) >= self._fails_after:
            raise EncoderFailed(self.name, "server", "it fails on purpose")
        self.asked += texts
        return self.rows(texts)


def chunks_of_texts(texts: Sequence[str], document: str = "facts.txt") -> list[LibraryChunk]:
    """One chunk for each text."""
    return [LibraryChunk(document=document, chunk=n, page=n % 3 or None, text=text) for n, text in enumerate(texts)]
