"""Cluster bootstrap of associations: the statistic of every resample, and its standard error.

A cluster is a sampled unit (a case, an essay) whose rows (replies) are dependent. Every resample is ranked again. For
other statistics see `moot.metrics.jackknife`; its weights also fit the functions here, and then give each statistic
without one cluster. Functions raise ValueError for incompatible shapes, no rows, fewer than one resample, and a flag
that is not 0, 1 or NaN.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from moot.metrics.class_separation import checked_flags
from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import CompleteBlock, as_codes, as_pair, complete_blocks
from moot.metrics.rank_correlation import LEAST_ROWS
from moot.metrics.weighted_ranks import centred_weighted_ranks, rank_covariances

Weights = npt.NDArray[np.int32]
"""Number of draws of each row in each resample, `(resamples, n)`."""

_BYTES = 2**28  # of the largest array; limits the resamples per block


def cluster_weights(clusters: npt.ArrayLike, resamples: int, seed: int = 0) -> Weights:
    """Cluster bootstrap weights: how often each row is in each resample.

    Args:
        clusters: `(n,)`, cluster of each row, of any sortable type.
        resamples: number of resamples, at least 1.
        seed: seed of the random generator. The same clusters and seed give the same draws for every statistic.

    Returns:
        `(resamples, n)`, whole numbers from 0; equal for the rows of a cluster.

    Source: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8.

    >>> weights = cluster_weights(["a", "a", "b"], 4)
    >>> bool((weights[:, 0] == weights[:, 1]).all()), weights[:, 1:].sum(axis=1).tolist()
    (True, [2, 2, 2, 2])
    """
    if resamples < 1:
        raise ValueError(f"at least one resample expected, not {resamples}")
    codes = as_codes(clusters, np.size(np.asarray(clusters)))
    if not len(codes):
        raise ValueError("there are no rows")
    number = int(codes.max()) + 1
    random = np.random.default_rng(seed)
    weights = np.empty((resamples, len(codes)), dtype=np.int32)
    for row in weights:
        row[:] = np.bincount(random.integers(number, size=number), minlength=number)[codes]
    return weights


def resampled_spearman(x: npt.ArrayLike, y: npt.ArrayLike, weights: Weights) -> Floats:
    """Spearman's rho of every resample.

    Args:
        x: `(n, F)`, NaN where unknown (a vector is one column).
        y: `(n, T)`, likewise.
        weights: `(resamples, n)`, from `cluster_weights`.

    Returns:
        `(resamples, F, T)`, exactly the rho of the drawn rows; NaN where undefined.
    """
    features, targets = as_pair(x, y)
    result = np.full((len(weights), features.shape[1], targets.shape[1]), np.nan)
    for block, some, drawn in _weighted_blocks(features, targets, weights):
        stack = _stack_of(block, drawn)
        squares_y = np.empty((drawn.shape[1], 1, len(block.targets)))
        for target, scores in enumerate(block.y.T):
            ranks, squares_y[:, 0, target] = centred_weighted_ranks(scores, drawn)
            np.multiply(ranks, drawn, out=stack[:, 1 + target])
        sums, squares_x = rank_covariances(block.x, stack)
        both = squares_x[:, :, np.newaxis] * squares_y
        defined = (both > 0.0) & (drawn.sum(axis=0) >= LEAST_ROWS)[:, np.newaxis, np.newaxis]
        with np.errstate(invalid="ignore", divide="ignore"):
            rho = np.clip(np.where(defined, 12.0 * sums / np.sqrt(both), np.nan), -1.0, 1.0)
        result[np.ix_(some, block.features, block.targets)] = rho
    return result


def resampled_auroc(x: npt.ArrayLike, flags: npt.ArrayLike, weights: Weights) -> Floats:
    """Directed AUROC of every resample.

    Args:
        x: as for `resampled_spearman`.
        flags: `(n, T)`, 0, 1 or NaN.
        weights: `(resamples, n)`, from `cluster_weights`.

    Returns:
        `(resamples, F, T)`, in [0, 1]; NaN if a class is empty in the resample.
    """
    features, targets = checked_flags(x, flags)
    result = np.full((len(weights), features.shape[1], targets.shape[1]), np.nan)
    for block, some, drawn in _weighted_blocks(features, targets, weights):
        total = drawn.sum(axis=0)
        flagged = block.y.T @ drawn
        stack = _stack_of(block, drawn)
        for target, (flag, ones) in enumerate(zip(block.y.T, flagged, strict=True)):
            share = np.divide(ones, total, out=np.zeros(len(total)), where=total > 0.0)
            np.subtract.outer(flag, share, out=stack[:, 1 + target])
            stack[:, 1 + target] *= drawn
        sums, _ = rank_covariances(block.x, stack)
        pairs = (flagged * (total - flagged)).T[:, np.newaxis]
        area = 0.5 + np.divide(sums, pairs, out=np.full(sums.shape, np.nan), where=pairs > 0.0)
        result[np.ix_(some, block.features, block.targets)] = area
    return result


def bootstrap_error(resamples: npt.ArrayLike, clusters: int) -> Floats:
    """Bootstrap standard error of a statistic over clusters.

    The standard deviation of the resamples times `sqrt(G / (G - 1))`: drawing G clusters from G underestimates it.

    Args:
        resamples: `(resamples, ...)`, NaN where a resample has no value.
        clusters: G, the number of clusters that were drawn, at least 1.

    Returns:
        `(...)`, for `moot.metrics.jackknife.bounded_interval`; NaN if fewer than half of the resamples have a value, or
        if they do not vary (the bootstrap is undefined for perfect separation).

    Source: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 2.3.

    >>> float(bootstrap_error([0.4, 0.5, 0.6], 5).round(4))
    0.1118
    """
    values = np.asarray(resamples, dtype=np.float64)
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=0) / count
        sd = np.sqrt(np.where(known, (values - mean) ** 2, 0.0).sum(axis=0) / (count - 1))
        error = sd * np.sqrt(clusters / max(clusters - 1, 1))
    return np.asarray(np.where((2 * count >= len(values)) & (count > 1) & (sd > 1e-12), error, np.nan))


def _weighted_blocks(
    x: Floats, y: Floats, weights: Weights
) -> Iterator[tuple[CompleteBlock, npt.NDArray[np.intp], Floats]]:
    """Complete blocks with the indices of some resamples, and the weights `(m, some)` of the block's rows in them."""
    if weights.ndim != 2 or weights.shape[1] != len(x):
        raise ValueError(f"weights of (resamples, {len(x)}) expected, not {weights.shape}")
    for block in complete_blocks(x, y):
        if not len(block.rows):
            continue
        at_once = max(1, _BYTES // (8 * len(block.rows) * (len(block.targets) + 1)))
        for start in range(0, len(weights), at_once):
            some = np.arange(start, min(start + at_once, len(weights)))
            yield block, some, weights[np.ix_(some, block.rows)].T.astype(np.float64, order="C")


def _stack_of(block: CompleteBlock, drawn: Floats) -> Floats:
    """Weights of the rows, followed by an empty column per target: `(m, 1 + t, resamples)`."""
    stack = np.empty((len(drawn), 1 + len(block.targets), drawn.shape[1]))
    stack[:, 0] = drawn
    return stack
