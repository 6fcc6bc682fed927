"""Cluster permutation tests of many features against many targets.

Under the null hypothesis the targets of clusters are exchangeable. Targets are permuted as whole blocks between
clusters of equal composition, and keep their positions within the cluster. This preserves the dependence within
clusters, and the effect of a position (such as the scored trait) on feature and target.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.class_separation import checked_flags
from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import Numbers, as_codes, as_pair, columns_by_known
from moot.metrics.rank_correlation import LEAST_ROWS, centred_ranks

Statistic = Literal["spearman", "auroc"]
"""Measure of association: Spearman's rho, or the directed AUROC minus 0.5; 0 for no association."""

_BYTES = 2**26  # of the permuted targets per block
_FEW = 10  # extreme permutations; a lower count is unreliable
_ROUNDING = 2e-6  # of a correlation in single precision

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """Result of two-sided permutation tests of no association.

    Attributes:
        statistic: `(F, T)`, rho or `AUROC - 0.5` of the data. x is ranked on its known rows that have a target, y on
            all of its known rows, in the data and in the permutations; without NaN in x it is rho itself.
        p_value: `(F, T)`, of each pair alone; NaN if the statistic is undefined.
        max_p_value: `(F, T)`, adjusted for the number of features of the target: the proportion of permutations whose
            largest |statistic| is at least this one. Controls the family-wise error rate; at least `1 / (permutations +
            1)`.
        null_quantile: `(T,)`, 95 % quantile of the largest |statistic| over the features.
        movable: `(T,)`, proportion of rows in clusters that have another of equal composition; other rows are not
            permuted. If it is 0 nothing was tested, and the p-values are NaN.
    """

    statistic: Floats
    p_value: Floats
    max_p_value: Floats
    null_quantile: Floats
    movable: Floats


def permutation_test(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: npt.ArrayLike,
    permutations: int = 1000,
    seed: int = 0,
    statistic: Statistic = "spearman",
    slots: npt.ArrayLike | None = None,
) -> PermutationTest:
    """Cluster permutation test of association: targets are exchanged between clusters of equal composition.

    The p-value is `(k + 1) / (permutations + 1)`, with k the number of permutations at least as extreme as the data. If
    k is below 10 it is the tail of a normal distribution with the mean and standard deviation of the permutations, so
    that the Benjamini-Hochberg procedure can rank thousands of tests; it is at least `k / (permutations + 1)`. No
    p-value is below the reciprocal of the number of arrangements.

    Args:
        x: `(n, F)`, NaN where unknown (a vector is one column). Leave out features with few known rows: by chance they
            have the largest |statistic|.
        y: `(n, T)`, likewise; 0 and 1 for "auroc". Rows without a target are left out before the composition of
            clusters is compared.
        clusters: `(n,)`, cluster of each row, of any sortable type.
        permutations: number of permutations, at least 1.
        seed: seed of the random generator.
        statistic: measure of association, see `Statistic`.
        slots: `(n,)`, position of each row in its cluster, of any sortable type, such as the trait: targets are only
            exchanged between rows of equal position, and clusters of equal composition have equal positions. None:
            positions follow the order of the rows, and clusters of equal size have equal composition.

    Raises:
        ValueError: for incompatible shapes, a flag that is not 0, 1 or NaN, or `permutations` below 1.

    Source: Fisher, The Design of Experiments, 1935; Westfall and Young, Resampling-Based Multiple Testing, 1993, for
    the maximum; Winkler et al., NeuroImage 2015, for blocks; Winkler et al., NeuroImage 2016, for tails.

    >>> x = np.arange(40.0)
    >>> result = permutation_test(x, np.round(x / 9), np.arange(40), permutations=99)
    >>> bool(result.p_value.item() < 1e-6), result.max_p_value.item(), result.movable.item()
    (True, 0.01, 1.0)
    """
    if permutations < 1:
        raise ValueError(f"at least one permutation expected, not {permutations}")
    features, targets = checked_flags(x, y) if statistic == "auroc" else as_pair(x, y)
    codes = as_codes(clusters, len(features))
    positions = np.zeros(len(codes), np.intp) if slots is None else as_codes(slots, len(features))
    shape = features.shape[1], targets.shape[1]
    of_pairs, p_value, max_p_value = np.full((3, *shape), np.nan)
    result = PermutationTest(of_pairs, p_value, max_p_value, np.full(shape[1], np.nan), np.zeros(shape[1]))
    for known, columns in columns_by_known(targets):
        if known.sum() < LEAST_ROWS:
            continue
        sums = _PermutedStatistics(features[known], targets[np.ix_(known, columns)], statistic)
        blocks = _exchangeable_blocks(codes[known], positions[known])
        observed = sums.statistics(np.arange(known.sum())[:, np.newaxis])[:, 0]
        null = _Null(observed)
        for sources in _sources(blocks, permutations, seed, 4 * int(known.sum()) * len(columns)):
            null.add(sums.statistics(sources))
        least = float(np.exp(-sum(scipy.special.gammaln(len(block) + 1.0) for block in blocks)))
        result.statistic[:, columns] = observed
        result.p_value[:, columns] = null.p_values(least)
        result.max_p_value[:, columns], result.null_quantile[columns] = null.max_p_values(least)
        movable = sum(block.size for block in blocks if len(block) > 1) / known.sum()
        result.movable[columns] = movable
        if not movable:
            result.p_value[:, columns] = result.max_p_value[:, columns] = result.null_quantile[columns] = np.nan
    return result


class _PermutedStatistics:
    """Statistics of permutations, from centred ranks of unit variance in single precision.

    A feature with missing values uses only some of the permuted targets, so their variance is recomputed in each
    permutation. Their mean has no effect, because the feature's own ranks sum to 0 over its rows.
    """

    def __init__(self, x: Floats, y: Floats, statistic: Statistic) -> None:
        self._area = statistic == "auroc"
        self._x = np.zeros(x.shape, dtype=np.float32)
        self._scale = np.full(x.shape[1], np.nan)
        self._rows = np.empty(x.shape[1])
        self._set = np.empty(x.shape[1], dtype=np.intp)
        masks = []
        for number, (known, columns) in enumerate(columns_by_known(x)):
            ranks = centred_ranks(x[np.ix_(known, columns)])
            spread = np.sqrt((ranks * ranks).sum(axis=0) / max(1, known.sum()))
            with np.errstate(invalid="ignore", divide="ignore"):
                unit = np.where(spread > 0.0, ranks / spread, 0.0)
            self._x[np.ix_(known, columns)] = unit
            enough = (spread > 0.0) & (known.sum() >= LEAST_ROWS)
            self._scale[columns] = np.where(enough, spread if self._area else 1.0, np.nan)
            self._rows[columns], self._set[columns] = known.sum(), number
            masks.append(known)
        self._known = np.array(masks, dtype=np.float32).reshape(len(masks), len(x))
        centred = y - y.mean(axis=0) if self._area else centred_ranks(y)
        self._spread = np.sqrt((centred * centred).mean(axis=0))
        with np.errstate(invalid="ignore", divide="ignore"):
            self._y: Singles = np.where(self._spread > 0.0, centred / self._spread, np.nan).astype(np.float32)

    def statistics(self, sources: npt.NDArray[np.int32] | Numbers) -> Floats:
        """Statistics `(F, p, T)` of p permutations.

        Args:
            sources: `(n, p)`, the row from which each row takes its targets.
        """
        n, p = sources.shape
        moved = self._y[sources].reshape(n, -1)
        products = (self._x.T @ moved).astype(np.float64).reshape(-1, p, self._y.shape[1])
        rows = self._rows[:, np.newaxis, np.newaxis]
        variance = self._variances(moved).reshape(-1, p, self._y.shape[1])[self._set]
        scale = self._scale[:, np.newaxis, np.newaxis]
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.where(variance > 1e-5, variance, np.nan)
            if self._area:  # P N = rows^2 times the variance of the flag
                result = products * scale / (rows * variance * self._spread) / rows
            else:
                result = products * scale / (rows * np.sqrt(variance))
        return np.asarray(result, dtype=np.float64)

    def _variances(self, moved: Singles) -> Floats:
        """Variances of the permuted targets over the known rows of each set of features, `(sets, p T)`."""
        result = np.ones((len(self._known), moved.shape[1]))
        incomplete = np.flatnonzero(self._known.min(axis=1) == 0.0)
        if len(incomplete):
            known = self._known[incomplete]
            rows = np.maximum(known.sum(axis=1, dtype=np.float64), 1.0)[:, np.newaxis]
            means = (known @ moved) / rows
            result[incomplete] = (known @ (moved * moved)) / rows - means**2
        return result


class _Null:
    """Null distribution, accumulated over the permutations."""

    def __init__(self, observed: Floats) -> None:
        self._observed = observed
        self._extreme = np.zeros(observed.shape)
        self._sum, self._squares = np.zeros(observed.shape), np.zeros(observed.shape)
        self._largest: list[Floats] = []

    def add(self, drawn: Floats) -> None:
        """Add the statistics of some permutations, `(F, p, T)`; an undefined statistic counts as 0."""
        known = np.nan_to_num(drawn)
        size = np.abs(known)
        self._extreme += (size >= np.abs(self._observed)[:, np.newaxis] - _ROUNDING).sum(axis=1)
        self._sum += known.sum(axis=1)
        self._squares += (known * known).sum(axis=1)
        self._largest.append(size.max(axis=0, initial=0.0))

    def p_values(self, least: float) -> Floats:
        """Unadjusted p-value of each pair."""
        drawn = sum(map(len, self._largest))
        mean = self._sum / drawn
        spread = np.sqrt(np.maximum(self._squares / drawn - mean**2, 0.0))
        size = np.abs(self._observed)
        with np.errstate(invalid="ignore", divide="ignore"):
            tail = scipy.special.ndtr((mean - size) / spread) + scipy.special.ndtr((-mean - size) / spread)
        counted = (self._extreme + 1.0) / (drawn + 1.0)
        fine = np.where(np.isnan(tail), counted, np.clip(tail, self._extreme / (drawn + 1.0), 1.0))
        result = np.maximum(np.where(self._extreme < _FEW, fine, counted), least)
        return np.where(np.isnan(self._observed), np.nan, result)

    def max_p_values(self, least: float) -> tuple[Floats, Floats]:
        """Adjusted p-values, `(F, T)`, and the quantile of the largest statistic, `(T,)`."""
        largest = np.sort(np.concatenate(self._largest), axis=0)
        reached = np.stack(
            [
                len(null) - np.searchsorted(null, np.abs(observed) - _ROUNDING)
                for null, observed in zip(largest.T, self._observed.T, strict=True)
            ],
            axis=1,
        )
        adjusted = np.maximum((reached + 1.0) / (len(largest) + 1.0), least)
        return np.where(np.isnan(self._observed), np.nan, adjusted), np.quantile(largest, 0.95, axis=0)


def _exchangeable_blocks(codes: Numbers, positions: Numbers) -> list[npt.NDArray[np.int32]]:
    """Exchangeability blocks: rows of the clusters of each composition, `(clusters, size)`, ordered by position."""
    order = np.lexsort((positions, codes)).astype(np.int32)
    sizes = np.bincount(codes)
    size_of_row = sizes[codes[order]]
    result = []
    for size in np.unique(sizes[sizes > 0]):
        block = order[size_of_row == size].reshape(-1, size)
        _, composition = np.unique(positions[block], axis=0, return_inverse=True)
        result += [block[composition.ravel() == number] for number in range(int(composition.max()) + 1)]
    return result


def _sources(
    blocks: list[npt.NDArray[np.int32]], permutations: int, seed: int, row_bytes: int
) -> Iterator[npt.NDArray[np.int32]]:
    """Permutations `(n, p)`, in blocks: the row from which each row takes its targets."""
    random = np.random.default_rng(seed)
    at_once = max(1, _BYTES // row_bytes)
    n = sum(block.size for block in blocks)
    for start in range(0, permutations, at_once):
        p = min(at_once, permutations - start)
        sources = np.empty((n, p), dtype=np.int32)
        for block in blocks:
            drawn = random.permuted(np.tile(np.arange(len(block)), (p, 1)), axis=1)
            sources[block.ravel()] = block[drawn].transpose(1, 2, 0).reshape(-1, p)
        yield sources
