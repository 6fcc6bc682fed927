"""Rank sums of many resamples at once, each ranked again: a row drawn w times is w tied rows.

Drawing rows changes the ranks of all rows. A bootstrap that keeps the ranks of the whole sample has the wrong variance
if x and y are associated. With bootstrap weights, the mid-rank of a row is the weight below its value, plus half the
weight at its value, plus one half. One sort of a feature therefore serves all resamples, and the rest are cumulative
sums in that order.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import Numbers

_ROWS = 512  # per block, so that the gathered rows fit into the cache; a multiple of _RUN
_RUN = 16

T = TypeVar("T")


def rank_covariances(x: Floats, stack: Floats) -> tuple[Floats, Floats]:
    """Rank covariances: sums of a feature's mid-rank times a value, for many features, targets and resamples.

    Args:
        x: `(m, f)`, without NaN.
        stack: `(m, 1 + t, resamples)`: first the bootstrap weights, then for each target the values to multiply with
            the ranks, times the weights. The values of a target sum to 0 over the rows, so that the origin of the ranks
            does not matter. One array, so that one gather sorts both by a feature.

    Returns:
        The sums, `(resamples, f, t)`; and `(resamples, f)`, 12 times the weighted sum of squares of each feature's
        centred ranks, `W^3 - sum over tied values of w^3`, exactly 0 if the feature does not vary.
    """
    result = _in_threads(lambda column: _one_feature(column, stack), list(x.T))
    total = stack[:, 0].sum(axis=0)
    sums = np.stack([sums for sums, _ in result]).transpose(2, 0, 1)
    squares = total[:, np.newaxis] ** 3 - np.stack([cubes for _, cubes in result], axis=1)
    return sums, squares


def centred_weighted_ranks(y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Centred mid-ranks of one target in each resample.

    Args:
        y: `(m,)`, without NaN.
        weights: `(m, resamples)`, how often each row was drawn.

    Returns:
        The ranks, `(m, resamples)`; and `(resamples,)`, 12 times their weighted sum of squares.

    >>> ranks, squares = centred_weighted_ranks(np.array([5.0, 1.0]), np.array([[2.0], [1.0]]))
    >>> ranks.ravel().tolist(), squares.tolist()  # the sample 5, 5, 1
    ([0.5, -1.0], [18.0])
    """
    from scipy.sparse import csr_array

    levels, level = np.unique(y, return_inverse=True)
    sums = csr_array((np.ones(len(y)), (level, np.arange(len(y)))), shape=(len(levels), len(y))) @ weights
    total = sums.sum(axis=0)
    middle = np.cumsum(sums, axis=0) - (sums + total) / 2
    return middle[level], total**3 - (sums**3).sum(axis=0)


def _in_threads(work: Callable[[Floats], T], items: Sequence[Floats]) -> list[T]:
    """Parallel map in threads, results in order; numpy releases the GIL for most of the work."""
    workers = min(len(items), os.cpu_count() or 1)
    if workers <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))


def _one_feature(values: Floats, stack: Floats) -> tuple[Floats, Floats]:
    """Sums of one feature, `(t, resamples)`, and the cubes of the weights at its tied values, `(resamples,)`."""
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    starts = np.flatnonzero(np.r_[True, in_order[1:] != in_order[:-1]])
    below, cubes = np.zeros(stack.shape[2]), np.zeros(stack.shape[2])
    sums = np.zeros((stack.shape[1] - 1, stack.shape[2]))
    gathered, running = np.empty((_ROWS, *stack.shape[1:])), np.zeros((_ROWS, stack.shape[2]))
    for first, last in _whole_ties(starts, len(values)):
        if last - first > _ROWS:
            at = _sum_of_rows(stack, order[first:last])
            sums += at[1:] * (below + at[0] / 2)
            cubes += at[0] ** 3
            below += at[0]
            continue
        rows = gathered[: last - first]
        stack.take(order[first:last], axis=0, out=rows, mode="clip")  # the other modes make an extra copy
        running[: len(rows)] = rows[:, 0]
        _accumulate(running, len(rows))
        ties = starts[np.searchsorted(starts, first) : np.searchsorted(starts, last)] - first
        sizes = np.diff(ties, append=len(rows))
        up_to = running[: len(rows)] if len(ties) == len(rows) else running[ties + sizes - 1]
        at_tie = np.diff(up_to, axis=0, prepend=0.0)
        middle = up_to - at_tie / 2
        middle += below
        cubes += np.einsum("nb,nb,nb->b", at_tie, at_tie, at_tie)
        below = below + up_to[-1]
        if len(ties) < len(rows):
            middle = np.repeat(middle, sizes, axis=0)
        sums += np.einsum("ntb,nb->tb", rows[:, 1:], middle)
    return sums, cubes


def _whole_ties(starts: Numbers, n: int) -> Iterator[tuple[int, int]]:
    """Ranges of sorted rows that split no tie, of at most `_ROWS` rows or a single tie."""
    ends = np.append(starts[1:], n)
    first = 0
    while first < n:
        fitting = int(np.searchsorted(ends, first + _ROWS, side="right")) - 1
        last = int(ends[fitting]) if fitting >= 0 and ends[fitting] > first else int(ends[fitting + 1])
        yield first, last
        first = last


def _sum_of_rows(stack: Floats, rows: Numbers) -> Floats:
    """Sum of some rows, gathered in blocks."""
    total = np.zeros(stack.shape[1:])
    for first in range(0, len(rows), _ROWS):
        total += stack[rows[first : first + _ROWS]].sum(axis=0)
    return total


def _accumulate(rows: Floats, n: int) -> None:
    """Cumulative sums of the first n rows, in place; three times as fast as numpy's along this axis.

    First within runs of rows, all runs at once, then over the ends of the runs. Later rows are unchanged.
    """
    whole = -(-n // _RUN)
    runs = rows[: whole * _RUN].reshape(whole, _RUN, -1)
    for k in range(1, _RUN):
        runs[:, k] += runs[:, k - 1]
    ends = runs[:, -1]
    for k in range(1, whole):
        ends[k] += ends[k - 1]
    runs[1:, :-1] += ends[:-1, np.newaxis]
