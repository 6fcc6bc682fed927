"""Agent A: the chunks that are nearest to the claim, out of what the case brings and of the run's library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moot.protocols.case import Case
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.settings import EvidenceSettings
from moot.protocols.chunking import chunks_of
from moot.protocols.floor import Floor

_LONG = 20_000
"""Characters above which cutting leaves the event loop."""


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

    What says the same, but for white space, is evidence once. Nothing is kept that is not above
    `settings.least_similarity`.
    """
    ranked = sorted(await _measured(case, floor, settings.passages), key=lambda found: -found[1])
    kept: dict[str, tuple[Chunk, float]] = {}
    for chunk, similarity in ranked:
        if similarity > settings.least_similarity:
            kept.setdefault(" ".join(chunk.text.split()), (chunk, similarity))
    nearest = list(kept.values())[: settings.passages]
    return [_item(number, *found) for number, found in enumerate(nearest, start=1)]


async def _measured(case: Case, floor: Floor, n: int) -> list[tuple[Chunk, float]]:
    """Candidates with their cosine, in the order of their places."""
    length = len(case.passage) + sum(map(len, case.documents))
    own = await floor.compute(own_chunks, case) if length > _LONG else own_chunks(case)
    measured: list[tuple[Chunk, float]] = []
    if own:
        vectors = await floor.embed([case.question, *(chunk.text for chunk in own)])
        measured += [(chunk, float(cosine)) for chunk, cosine in zip(own, vectors[1:] @ vectors[0], strict=True)]
    # twice as many as are kept: some may say what the case itself brings
    for passage in await floor.search(case.question, n=2 * n):
        chunk = Chunk("document", passage.document, passage.chunk, passage.text, passage.page)
        measured.append((chunk, passage.similarity))
    return measured


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
