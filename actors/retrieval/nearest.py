"""Exact nearest-neighbour search: products in single precision, in blocks, select candidates; double precision
decides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]

_BLOCK_ROWS = 8192
_BLOCK_QUERIES = 256
"""Rows and queries of a block: they bound the products in memory at once to 8 MiB."""

_RESCORED = 2**20
"""Numbers in the rows that are rescored at once: 8 MiB in double precision."""


def nearest(vectors: Rows, queries: Rows, n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Exact nearest neighbours by dot product: indices and scores of `n` rows per query, best first, ties by index.

    The result of a query does not depend on the other queries: products in single precision exclude only rows that
    cannot be among the nearest under any rounding; the others are scored in double precision, row by row.

    Args:
        vectors: unit rows, shape (m, d); may be memory-mapped.
        queries: unit rows, shape (q, d).
        n: at least 1; if there are fewer rows, all are returned.

    Returns:
        Indices and products, each of shape (q, min(n, m)).
    """
    kept = min(n, len(vectors))
    places = np.empty((len(queries), kept), np.int64)
    scores = np.empty((len(queries), kept), np.float64)
    if not kept:
        return places, scores
    for start in range(0, len(queries), _BLOCK_QUERIES):
        some = slice(start, start + _BLOCK_QUERIES)
        places[some], scores[some] = _nearest_to_few(vectors, queries[some], kept)
    return places, scores


def _nearest_to_few(vectors: Rows, queries: Rows, n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    error = _rounding_error(vectors.shape[1])
    found = [_Nearest(query.astype(np.float64), n) for query in queries]
    buffer = np.empty((len(queries), min(_BLOCK_ROWS, len(vectors))), np.float32)
    for start in range(0, len(vectors), _BLOCK_ROWS):
        rows = vectors[start : start + _BLOCK_ROWS]
        products = np.matmul(queries, rows.T, out=buffer[:, : len(rows)])
        least = np.array([one.least for one in found]) - error
        if start == 0 and n < len(rows):  # nothing is known yet: the block's own n-th product excludes most rows
            nth = np.partition(products, len(rows) - n, axis=1)[:, len(rows) - n]
            least = np.maximum(least, nth - 2.0 * error)
        passing, columns = np.divmod(np.flatnonzero(products >= least.astype(np.float32)[:, None]), len(rows))
        bounds = np.searchsorted(passing, np.arange(len(queries) + 1))
        for number in np.unique(passing):
            found[number].take(vectors, start + columns[bounds[number] : bounds[number + 1]])
    return np.stack([one.places for one in found]), np.stack([one.scores for one in found])


def _rounding_error(dimension: int) -> float:
    """Rounding error bound of a dot product of unit rows in single precision, summed in any order; with a margin for
    rows of almost unit length and for the rounding of the threshold."""
    return 1.01 * (dimension + 4) * 2.0**-24


class _Nearest:
    """Running top-n of one query; rows are added in order of index.

    Attributes:
        places, scores: indices and scores, best first, ties by index.
    """

    def __init__(self, query: npt.NDArray[np.float64], n: int) -> None:
        self._query, self._n = query, n
        self.places = np.empty(0, np.int64)
        self.scores = np.empty(0, np.float64)

    @property
    def least(self) -> float:
        """Score that a row has to reach; minus infinity while fewer than `n` rows are known."""
        return float(self.scores[-1]) if len(self.scores) == self._n else -np.inf

    def take(self, vectors: Rows, candidates: npt.NDArray[np.int64]) -> None:
        """Rescore rows and keep the nearest."""
        step = max(1, _RESCORED // vectors.shape[1])
        for start in range(0, len(candidates), step):
            some = candidates[start : start + step]
            rows = vectors[some].astype(np.float64)
            places = np.concatenate([self.places, some])
            scores = np.concatenate([self.scores, (rows * self._query).sum(axis=1)])
            best = np.argsort(-scores, kind="stable")[: self._n]
            self.places, self.scores = places[best], scores[best]
