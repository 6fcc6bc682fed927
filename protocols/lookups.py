"""Results of a floor's lookups: passages of the run's library, and the classification of a text."""

from __future__ import annotations

import msgspec


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """Chunk of a document of the run's library.

    Attributes:
        document: the document's name, as the user wrote it.
        chunk: 0-based number of the chunk in its document.
        text: text of the chunk, unchanged.
        page: 1-based page on which it begins; None for documents without pages.
        similarity: cosine of its vector and the query's, in [-1, 1].
    """

    document: str
    chunk: int
    text: str
    page: int | None = None
    similarity: float


class Classified(msgspec.Struct, frozen=True, kw_only=True):
    """Classification of a judge's summary by the run's classifier.

    Attributes:
        p_hallucinated: probability that the claim is hallucinated, in [0, 1].
        trained_on: whether the classifier was trained on this very case, so that the result is no evidence.
    """

    p_hallucinated: float
    trained_on: bool = False
