"""Pairwise complete observations: each pair of columns is measured on the rows that have both.

Columns with the same missing rows are measured together. A few complete blocks cover thousands of pairs, because the
statistics of a window are unknown for the same replies, and the scores of a judge panel for the same failures.
Functions raise ValueError for other numbers of dimensions or rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats

Numbers = npt.NDArray[np.intp]
Known = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CompleteBlock:
    """Complete block: some columns of x and some of y on the rows where all of them are known.

    Attributes:
        rows: `(m,)`, indices of the rows, ascending.
        features: `(f,)`, indices of the columns of x.
        targets: `(t,)`, indices of the columns of y.
        x: `(m, f)`, without NaN.
        y: `(m, t)`, without NaN.
    """

    rows: Numbers
    features: Numbers
    targets: Numbers
    x: Floats
    y: Floats


def as_columns(values: npt.ArrayLike) -> Floats:
    """Values as a float64 matrix `(n, columns)`; a vector is one column.

    >>> as_columns([1, 2, 3]).shape
    (3, 1)
    """
    result = np.asarray(values, dtype=np.float64)
    if result.ndim == 1:
        return result[:, np.newaxis]
    if result.ndim != 2:
        raise ValueError(f"rows and columns expected, not {result.shape}")
    return result


def as_pair(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Both as float64 matrices, see `as_columns`, with the same number of rows."""
    features, targets = as_columns(x), as_columns(y)
    if len(features) != len(targets):
        raise ValueError(f"{len(features)} rows of x but {len(targets)} of y")
    return features, targets


def as_codes(groups: npt.ArrayLike, rows: int) -> Numbers:
    """Integer codes of groups, from 0 in sorted order, `(rows,)`.

    >>> as_codes(["b", "a", "b"], 3).tolist()
    [1, 0, 1]
    """
    result = np.asarray(groups)
    if result.shape != (rows,):
        raise ValueError(f"one group for each of {rows} rows expected, not {result.shape}")
    return np.unique(result, return_inverse=True)[1].astype(np.intp)


def columns_by_known(values: Floats) -> Iterator[tuple[Known, Numbers]]:
    """Groups of columns that are known in the same rows.

    Args:
        values: `(n, columns)`, NaN where unknown.

    Yields:
        Which rows are known, `(n,)`, and the indices of the columns; groups in the order of their first column.
    """
    known = ~np.isnan(values)
    groups: dict[bytes, list[int]] = {}
    for column, bits in enumerate(np.packbits(known, axis=0).T):
        groups.setdefault(bits.tobytes(), []).append(column)
    for columns in groups.values():
        yield known[:, columns[0]], np.array(columns, dtype=np.intp)


def complete_blocks(x: Floats, y: Floats) -> Iterator[CompleteBlock]:
    """Complete blocks that cover each pair of a column of x and a column of y once.

    Args:
        x: `(n, F)`, NaN where unknown.
        y: `(n, T)`, likewise.

    >>> x, y = np.array([[1.0, np.nan], [2.0, 3.0]]), np.array([[1.0], [0.0]])
    >>> [(block.features.tolist(), block.rows.tolist()) for block in complete_blocks(x, y)]
    [([0], [0, 1]), ([1], [1])]
    """
    target_sets = list(columns_by_known(y))
    for known_x, features in columns_by_known(x):
        for known_y, targets in target_sets:
            rows = np.flatnonzero(known_x & known_y)
            yield CompleteBlock(rows, features, targets, x[np.ix_(rows, features)], y[np.ix_(rows, targets)])
