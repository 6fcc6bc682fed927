"""Agent A: the nearest chunks to the claim, from the case's passage, its documents and the run's library."""

from __future__ import annotations

import msgspec

from moot.protocols.case import Case
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.settings import EvidenceSettings
from moot.protocols.chunk_retrieval import nearest_chunks
from moot.protocols.floor import Floor


async def retrieve(case: Case, floor: Floor, settings: EvidenceSettings) -> list[Item]:
    """The nearest chunks over all sources, nearest first, as `E1` ...; see `nearest_chunks`."""
    chunks = await nearest_chunks(
        case.question,
        case,
        floor,
        n=settings.passages,
        least_similarity=settings.least_similarity,
        with_passage=True,
    )
    return [
        Item(id=f"E{number}", picture=None, **msgspec.structs.asdict(chunk))
        for number, chunk in enumerate(chunks, start=1)
    ]
