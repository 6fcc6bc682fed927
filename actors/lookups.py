"""What one debate looks up: vectors, the nearest of its documents or of the library, a classifier's reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from moot.actors.encoders.interface import Encoder
from moot.actors.house import House
from moot.actors.record.recovery import vector_key
from moot.protocols.case import Case
from moot.protocols.errors import EncoderFailed
from moot.protocols.lookups import Classified, Passage


class Lookups:
    """The look-ups of one debate; every vector is computed once, recorded, and read back on a replay.

    Args:
        case: what is debated.
        attempt: of the debate.
        house: shared parts.
        vectors: what the journal holds, as float32 bytes by `vector_key`.
    """

    def __init__(self, case: Case, attempt: int, house: House, vectors: Mapping[str, bytes]) -> None:
        self._case, self._attempt, self._house = case, attempt, house
        self._vectors = dict(vectors)

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """See `Floor.embed`."""
        return await self._embed(self._house.encoder, texts)

    async def retrieve(self, query: str, documents: Sequence[str], n: int) -> list[int]:
        """See `Floor.retrieve`."""
        vectors = await self.embed([query, *documents])
        nearness = vectors[1:] @ vectors[0]
        return [int(i) for i in np.argsort(-nearness, kind="stable")[:n]]

    async def search(self, query: str, n: int) -> list[Passage]:
        """See `Floor.search`."""
        library = self._house.library
        return [] if library is None else await library.search((await self.embed([query]))[0], n)

    async def classify(self, text: str) -> Classified | None:
        """See `Floor.classify`."""
        classifier = self._house.classifier
        if classifier is None:
            return None
        (vector,) = await self._embed(classifier.encoder or self._house.encoder, [text])
        return Classified(
            p_hallucinated=classifier.p_hallucinated(vector),
            trained_on=classifier.trained_on(self._case.question),
        )

    async def _embed(self, encoder: Encoder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        hashes = [blake2b(text.encode(), digest_size=16).hexdigest() for text in texts]
        keys = [vector_key(encoder.name, text_hash) for text_hash in hashes]
        missing = [i for i, key in enumerate(keys) if key not in self._vectors]
        if missing:
            rows = await encoder.encode([texts[i] for i in missing])
            new = [(hashes[i], row.tobytes()) for i, row in zip(missing, rows, strict=True)]
            self._vectors |= {keys[i]: raw for i, (_, raw) in zip(missing, new, strict=True)}
            self._house.scribe.put_vectors(self._case.id, self._attempt, encoder.name, new)
        vectors = [np.frombuffer(self._vectors[key], np.float32) for key in keys]
        if len({len(vector) for vector in vectors}) > 1:
            raise EncoderFailed(encoder.name, "unparsable", "its vectors are not of the size of those in the record")
        return np.stack(vectors) if vectors else np.empty((0, encoder.dimension or 0), np.float32)
