"""Agent A: the nearest chunks to the claim, from the case's documents and the run's library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from moot.protocols.case import Case
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.settings import EvidenceSettings
from moot.protocols.floor import Floor
from moot.protocols.long_texts import is_long
from moot.protocols.lookups import Passage
from moot.protocols.text.chunking import chunks_of

MOST_SEARCHED = 4096
"""Most chunks requested from the library, duplicates included."""


def own_chunks(case: Case) -> list[Item]:
    """The chunks of the case's passage, then of its documents; which are evidence, and as what, is still open."""
    found = [_chunk("passage", case.title or "passage", i, text) for i, text in enumerate(chunks_of(case.passage))]
    for number, document in enumerate(case.documents, start=1):
        found += [_chunk("document", f"document {number}", i, text) for i, text in enumerate(chunks_of(document))]
    return found


def _chunk(kind: Literal["passage", "document"], document: str, chunk: int, text: str) -> Item:
    return Item(id="", kind=kind, document=document, chunk=chunk, page=None, picture=None, text=text, similarity=None)


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
            return [item.model_copy(update={"id": f"E{number}"}) for number, item in enumerate(kept, start=1)]
        asked = min(4 * asked, MOST_SEARCHED)


async def _measured(case: Case, floor: Floor) -> list[Item]:
    """The case's own chunks with their cosine, in the order of their places."""
    long = is_long([case.passage, case.documents])
    own = await floor.compute(own_chunks, case) if long else own_chunks(case)
    if not own:
        return []
    vectors = await floor.embed([case.question, *(item.text for item in own)])
    cosines = vectors[1:] @ vectors[0]
    return [item.model_copy(update={"similarity": float(at)}) for item, at in zip(own, cosines, strict=True)]


def _found(passage: Passage) -> Item:
    chunk = _chunk("document", passage.document, passage.chunk, passage.text)
    return chunk.model_copy(update={"page": passage.page, "similarity": passage.similarity})


def _distinct(measured: Sequence[Item], settings: EvidenceSettings) -> list[Item]:
    """The nearest of them, each text once."""
    kept: dict[str, Item] = {}
    for item in sorted(measured, key=_similarity, reverse=True):
        if _similarity(item) > settings.least_similarity:
            kept.setdefault(" ".join(item.text.split()), item)
    return list(kept.values())[: settings.passages]


def _is_settled(kept: Sequence[Item], last: float, settings: EvidenceSettings) -> bool:
    """Whether no chunk of the library behind the last one found, of this similarity, would be kept."""
    return last <= settings.least_similarity or (len(kept) == settings.passages and _similarity(kept[-1]) >= last)


def _similarity(item: Item) -> float:
    assert item.similarity is not None, "every chunk has been measured"
    return item.similarity
