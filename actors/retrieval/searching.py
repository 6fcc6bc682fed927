"""Searches of many debates at once: those that come while one is under way leave together in the next."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moot.actors.retrieval.nearest import Rows, nearest

_MOST_QUERIES = 1024
"""Queries of one search at most."""

Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Places and similarities, best first."""


class _Query(NamedTuple):
    vector: npt.NDArray[np.float32]
    n: int
    found: asyncio.Future[Found]


class Searching:
    """Finds the rows nearest to queries, in a thread, one batch at a time.

    Args:
        vectors: unit rows, shape (m, d); may be memory-mapped.
    """

    def __init__(self, vectors: Rows) -> None:
        self._vectors: Rows | None = vectors
        self._waiting: deque[_Query] = deque()
        self._working: asyncio.Task[None] | None = None

    async def nearest(self, vector: npt.NDArray[np.float32], n: int) -> Found:
        """The `n` rows nearest to a unit vector of shape (d,); see `moot.actors.retrieval.nearest`."""
        if self._vectors is None:
            raise RuntimeError("the library is closed")
        query = _Query(vector, n, asyncio.get_running_loop().create_future())
        self._waiting.append(query)
        if self._working is None:
            self._working = asyncio.create_task(self._work(self._vectors), name="searches of the library")
        return await query.found

    async def close(self) -> None:
        """Let waiting queries go and the vectors, once the search under way is done."""
        self._vectors = None
        while self._waiting:
            self._waiting.popleft().found.cancel()
        if self._working is not None:
            await asyncio.wait([self._working])

    async def _work(self, vectors: Rows) -> None:
        try:
            while self._waiting:
                together = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_QUERIES))]
                await _search(vectors, [query for query in together if not query.found.done()])
        finally:
            self._working = None


async def _search(vectors: Rows, queries: list[_Query]) -> None:
    if not queries:
        return
    try:
        rows = np.stack([query.vector for query in queries])
        places, scores = await asyncio.to_thread(nearest, vectors, rows, max(query.n for query in queries))
    except Exception as error:
        for query in queries:
            if not query.found.done():
                query.found.set_exception(error)
        return
    for query, of_places, of_scores in zip(queries, places, scores, strict=True):
        if not query.found.done():  # it was cancelled meanwhile
            query.found.set_result((of_places[: query.n], of_scores[: query.n]))
