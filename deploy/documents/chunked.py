"""Documents cut into the chunks of a library."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from moot.actors.retrieval.library import LibraryChunk
from moot.deploy.documents.document import Document
from moot.protocols.chunking import PAGE_BREAK, located_chunks


def chunked(documents: Iterable[Document]) -> list[LibraryChunk]:
    """The chunks of all documents, in order; one that goes on over the page is on the page on which it begins."""
    return [chunk for document in documents for chunk in _chunks(document)]


def _chunks(document: Document) -> list[LibraryChunk]:
    text = PAGE_BREAK.join(document.pages)
    begins = [0, *accumulate(len(page) + 1 for page in document.pages[:-1])]
    return [
        LibraryChunk(
            document=document.name,
            chunk=number,
            page=bisect_right(begins, chunk.start) if document.paged else None,
            text=chunk.text,
        )
        for number, chunk in enumerate(located_chunks(text))
    ]
