"""Nearest texts to a query, among a case's documents and the run's library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moot.protocols.floor import Floor
from moot.protocols.lookups import Passage


@dataclass(frozen=True, slots=True)
class NearestTexts:
    """Nearest texts.

    Attributes:
        places: indices of the case's documents, nearest first.
        passages: of the run's library, nearest first.
        texts: of both, in this order, without repeats.
    """

    places: tuple[int, ...]
    passages: tuple[Passage, ...]
    texts: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Data of the event `retrieved`: locations of the texts."""
        found = [{"document": each.document, "chunk": each.chunk, "page": each.page} for each in self.passages]
        return {"documents": list(self.places), "passages": found}


async def nearest_texts(query: str, documents: Sequence[str], floor: Floor, n: int) -> NearestTexts:
    """The `n` documents of a case and the `n` passages of the run's library that are nearest to a query, by cosine.

    Empty where a case has no documents and the run has no library.
    """
    places = await floor.retrieve(query, documents, n=n) if documents else []
    passages = await floor.search(query, n=n)
    texts = dict.fromkeys([*(documents[place] for place in places), *(passage.text for passage in passages)])
    return NearestTexts(tuple(places), tuple(passages), tuple(texts))
