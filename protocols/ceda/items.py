"""An item of evidence: a chunk of a text or the description of a picture, with its location."""

from __future__ import annotations

from typing import Literal

from moot.protocols.events import EventData

_LONGEST_NAME = 120


class Item(EventData):
    """One item of evidence.

    Attributes:
        id: `E1`, `E2` ... in the order of rank, pictures last.
        kind: a chunk of the case's own passage, a chunk of a document, or a picture.
        document: its document's name; `passage` where the case's passage has no title; None in some records.
        chunk: 0-based number of the chunk in its document; None for pictures.
        page: 1-based page on which the chunk begins; None if the document has no pages.
        picture: 0-based number of the case's picture; None for texts.
        text: of the chunk, or the description of the picture.
        similarity: cosine with the claim, in [-1, 1]; None for pictures.
    """

    id: str
    kind: Literal["passage", "document", "picture"]
    document: str | None = None
    chunk: int | None = None
    page: int | None = None
    picture: int | None = None
    text: str
    similarity: float | None = None

    @property
    def source(self) -> str:
        """Location as text; numbers are counted from 1."""
        return place_in_words(self.document or self.kind, page=self.page, chunk=self.chunk, picture=self.picture)


def place_in_words(
    document: str, *, page: int | None = None, chunk: int | None = None, picture: int | None = None
) -> str:
    """Location of an item of evidence; chunks and pictures are stored from 0 and displayed from 1.

    >>> place_in_words("cats.pdf", page=4, chunk=2), place_in_words("", picture=0)
    ('cats.pdf, page 4, chunk 3', 'picture 1')
    """
    if picture is not None:
        return f"picture {picture + 1}"
    name = " ".join(document.split())[:_LONGEST_NAME]
    return name + ("" if page is None else f", page {page}") + ("" if chunk is None else f", chunk {chunk + 1}")
