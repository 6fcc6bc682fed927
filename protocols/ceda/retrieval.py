"""Agent A: the chunks that are nearest to the claim, out of what the case brings and of the run's library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from moot.protocols.case import Case
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.settings import EvidenceSettings
from moot.protocols.chunking import chunks_of
from moot.protocols.floor import Floor
from moot.protocols.long_texts import is_long
from moot.protocols.lookups import Passage

MOST_SEARCHED = 4096
"""Of the library's chunks, however many of them say the same."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk that may become evidence; the fields are those of `Item`."""

    kind: Literal["passage", "document"]
    document: str
    chunk: int
    text: str
    page: int | None = None


def own_chunks(case: Case) -> list[Chunk]:
    """The chunks of the case's passage, then of its documents."""
    found = [Chunk("passage", case.title or "passage", i, text) for i, text in enumerate(chunks_of(case.passage))]
    for number, document in enumerate(case.documents, start=1):
        found += [Chunk("document", f"document {number}", i, text) for i, text in enumerate(chunks_of(document))]
    return found


async def retrieve(case: Case, floor: Floor, settings: EvidenceSettings) -> list[Item]:
    """The nearest chunks over all sources, nearest first, as `E1` ...; ties by place: passage, documents, library.

    What says the same, but for white space, is evidence once, and takes the place of nothing else: the library is
    searched further, up to `MOST_SEARCHED` of its chunks. Nothing is kept that is not above
    `settings.least_similarity`.
    """
    own, asked = await _measured(case, floor), 2 * settings.passages
    while True:
        passages = await floor.search(case.question, n=asked)
        kept = _distinct([*own, *map(_found, passages)], settings)
        if asked >= MOST_SEARCHED or len(passages) < asked or _is_settled(kept, passages[-1].similarity, settings):
            return [_item(number, *found) for number, found in enumerate(kept, start=1)]
        asked = min(4 * asked, MOST_SEARCHED)


async def _measured(case: Case, floor: Floor) -> list[tuple[Chunk, float]]:
    """The case's own chunks with their cosine, in the order of their places."""
    long = is_long([case.passage, case.documents])
    own = await floor.compute(own_chunks, case) if long else own_chunks(case)
    if not own:
        return []
    vectors = await floor.embed([case.question, *(chunk.text for chunk in own)])
    return [(chunk, float(cosine)) for chunk, cosine in zip(own, vectors[1:] @ vectors[0], strict=True)]


def _found(passage: Passage) -> tuple[Chunk, float]:
    return Chunk("document", passage.document, passage.chunk, passage.text, passage.page), passage.similarity


def _distinct(measured: Sequence[tuple[Chunk, float]], settings: EvidenceSettings) -> list[tuple[Chunk, float]]:
    """The nearest of them, each text once."""
    kept: dict[str, tuple[Chunk, float]] = {}
    for chunk, similarity in sorted(measured, key=lambda found: -found[1]):
        if similarity > settings.least_similarity:
            kept.setdefault(" ".join(chunk.text.split()), (chunk, similarity))
    return list(kept.values())[: settings.passages]


def _is_settled(kept: Sequence[tuple[Chunk, float]], last: float, settings: EvidenceSettings) -> bool:
    """Whether no chunk of the library behind the last one found, of this similarity, would be kept."""
    return last <= settings.least_similarity or (len(kept) == settings.passages and kept[-1][1] >= last)


def _item(number: int, chunk: Chunk, similarity: float) -> Item:
    return Item(
        id=f"E{number}",
        kind=chunk.kind,
        document=chunk.document,
        chunk=chunk.chunk,
        page=chunk.page,
        text=chunk.text,
        similarity=similarity,
    )
