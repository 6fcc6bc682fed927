"""The texts nearest to a query, out of what a case brings and of the run's library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moot.protocols.floor import Floor
from moot.protocols.lookups import Passage


@dataclass(frozen=True, slots=True)
class NearestTexts:
    """What was found.

    Attributes:
        places: of the case's documents, nearest first.
        passages: of the run's library, nearest first.
        texts: of both, in this order, each once.
    """

    places: tuple[int, ...]
    passages: tuple[Passage, ...]
    texts: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """As the event `retrieved` holds it: where the texts stand."""
        found = [{"document": each.document, "chunk": each.chunk, "page": each.page} for each in self.passages]
        return {"documents": list(self.places), "passages": found}


async def nearest_texts(query: str, documents: Sequence[str], floor: Floor, n: int) -> NearestTexts:
    """The `n` documents of a case and the `n` passages of the run's library that are nearest to a query, by cosine.

    Empty where a case brings no document and the run has no library.
    """
    places = await floor.retrieve(query, documents, n=n) if documents else []
    passages = await floor.search(query, n=n)
    texts = dict.fromkeys([*(documents[place] for place in places), *(passage.text for passage in passages)])
    return NearestTexts(tuple(places), tuple(passages), tuple(texts))
