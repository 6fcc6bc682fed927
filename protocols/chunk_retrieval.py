"""Retrieval of chunks: the nearest to a query, from a case's own texts and the run's library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from moot.protocols.case import Case
from moot.protocols.floor import Floor
from moot.protocols.long_texts import is_long
from moot.protocols.lookups import Passage
from moot.protocols.text.chunking import chunks_of

MOST_SEARCHED = 4096
"""Most chunks requested from the library, duplicates included."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Retrieved chunk.

    Attributes:
        kind: whether it is of the case's passage, or of a document of the case or the library.
        document: the document's name; `document N` for those of the case.
        chunk: 0-based number of the chunk in its document.
        page: 1-based page on which it begins; None for documents without pages.
        text: its text.
        similarity: cosine of its vector and the query's, in [-1, 1].
    """

    kind: Literal["passage", "document"]
    document: str
    chunk: int
    page: int | None = None
    text: str
    similarity: float


class _Piece(msgspec.Struct, frozen=True):
    """Chunk of the case before it is compared with the query."""

    kind: Literal["passage", "document"]
    document: str
    chunk: int
    text: str


async def nearest_chunks(
    query: str, case: Case, floor: Floor, *, n: int, least_similarity: float, with_passage: bool
) -> list[Chunk]:
    """The `n` nearest chunks over all sources, nearest first; ties by place: passage, documents, library.

    What says the same, but for white space, counts once, and takes the place of nothing else: the library is searched
    further, up to `MOST_SEARCHED` of its chunks. Nothing is kept that is not above `least_similarity`.

    Args:
        query: what they are to be near to.
        case: its documents are searched.
        with_passage: whether its passage is searched, too.
    """
    own, asked = await _measured(query, case, floor, with_passage), 2 * n
    while True:
        passages = await floor.search(query, n=asked)
        kept = _distinct([*own, *map(_found, passages)], n, least_similarity)
        last = passages[-1].similarity if passages else least_similarity
        settled = last <= least_similarity or (len(kept) == n and kept[-1].similarity >= last)
        if asked >= MOST_SEARCHED or len(passages) < asked or settled:
            return kept
        asked = min(4 * asked, MOST_SEARCHED)


def _pieces(case: Case, with_passage: bool) -> list[_Piece]:
    """The chunks of the case's passage, then of its documents."""
    name = case.title or "passage"
    found = [_Piece("passage", name, i, text) for i, text in enumerate(chunks_of(case.passage))] if with_passage else []
    for number, document in enumerate(case.documents, start=1):
        found += [_Piece("document", f"document {number}", i, text) for i, text in enumerate(chunks_of(document))]
    return found


async def _measured(query: str, case: Case, floor: Floor, with_passage: bool) -> list[Chunk]:
    """The case's own chunks with their cosine, in the order of their places."""
    long = is_long([case.passage, case.documents])
    own = await floor.compute(_pieces, case, with_passage) if long else _pieces(case, with_passage)
    if not own:
        return []
    vectors = await floor.embed([query, *(piece.text for piece in own)])
    cosines = vectors[1:] @ vectors[0]
    return [
        Chunk(**msgspec.structs.asdict(piece), similarity=float(at)) for piece, at in zip(own, cosines, strict=True)
    ]


def _found(passage: Passage) -> Chunk:
    return Chunk(kind="document", **msgspec.structs.asdict(passage))


def _distinct(measured: Sequence[Chunk], n: int, least_similarity: float) -> list[Chunk]:
    """The nearest of them, each text once."""
    kept: dict[str, Chunk] = {}
    for chunk in sorted(measured, key=lambda each: each.similarity, reverse=True):
        if chunk.similarity > least_similarity:
            kept.setdefault(" ".join(chunk.text.split()), chunk)
    return list(kept.values())[:n]
