"""Validation of discrete distributions, rows of shape `(..., k)`, for all measures of distributions.

Functions raise ValueError for incompatible shapes, and for a single number.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Values: TypeAlias = Any
"""A float for distributions of shape `(k,)`, an array for `(..., k)`; typed like numpy's reductions."""

SUM_TOLERANCE = 1e-6
"""Tolerance of the sum of a row."""


def known_rows(p: npt.ArrayLike) -> Floats:
    """Normalised rows as float64; a row that is not a distribution is all NaN.

    Args:
        p: `(..., k)`. A distribution has no negative, NaN (or None) or infinite entry, and its sum differs from 1 by at
            most `SUM_TOLERANCE`.

    >>> known_rows([[0.25, 0.75], [0.25, 0.25]]).tolist()
    [[0.25, 0.75], [nan, nan]]
    """
    rows = np.asarray(p, dtype=np.float64)
    if rows.ndim == 0:
        raise ValueError("a distribution must have the shape (..., k), not that of a single number")
    with np.errstate(over="ignore", invalid="ignore"):  # infinities of both signs sum to NaN
        total = row_sums(rows)[..., None]
    fits = np.abs(total - 1.0) <= SUM_TOLERANCE  # also False for NaN
    if fits.all() and (rows >= 0.0).all():  # the usual case, several times faster
        return rows / total
    fits &= (rows >= 0.0).all(axis=-1, keepdims=True)
    known: Floats = np.divide(rows, total, out=np.full(rows.shape, np.nan), where=fits)
    return known


def row_sums(terms: Floats) -> Floats:
    """Sums over the last axis; for short rows several times faster than numpy's reduction.

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0]
    """
    return np.asarray(np.einsum("...k->...", terms))


def known_pairs(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Both as normalised rows, see `known_rows`, with the same number of classes."""
    first, second = known_rows(p), known_rows(q)
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(f"distributions over {first.shape[-1]} and over {second.shape[-1]} classes")
    np.broadcast_shapes(first.shape, second.shape)
    return first, second


def row_weights(rows: Floats, weights: npt.ArrayLike | None) -> Floats:
    """Normalised mixture weights of m rows.

    Args:
        rows: `(..., m, k)`.
        weights: `(..., m)`, non-negative and not all 0; None for equal weights.

    Returns:
        `(..., m)`, sum to 1; NaN where a weight is NaN or negative, or all are 0.

    >>> row_weights(np.eye(2), [1.0, 3.0]).tolist()
    [0.25, 0.75]
    """
    if rows.ndim < 2:
        raise ValueError(f"several distributions must have the shape (..., m, k), not {rows.shape}")
    m = rows.shape[-2]
    given = np.ones(m) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.ndim == 0 or given.shape[-1] != m:
        raise ValueError(f"weights of shape {given.shape} for {m} distributions")
    np.broadcast_shapes(rows.shape[:-1], given.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        total = given.sum(axis=-1, keepdims=True)
    fits = np.isfinite(total) & (total > 0.0) & (given >= 0.0).all(axis=-1, keepdims=True)
    share: Floats = np.divide(given, total, out=np.full(given.shape, np.nan), where=fits)
    return share


def ratio(above: npt.ArrayLike, below: npt.ArrayLike) -> Floats:
    """Quotient `above / below`; NaN where `below` is not positive. The two are broadcast.

    >>> ratio([1.0, 1.0], [2.0, 0.0]).tolist()
    [0.5, nan]
    """
    one, other = np.broadcast_arrays(np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64))
    result: Floats = np.divide(one, other, out=np.full(one.shape, np.nan), where=other > 0.0)
    return result


def values(found: Floats) -> Values:
    """A float for a single value, else the array; negative zero becomes zero.

    >>> values(np.asarray(-0.0))
    0.0
    """
    found = found + 0.0
    return found if np.ndim(found) else float(found)
