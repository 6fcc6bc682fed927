"""Online moments and co-moments of many quantities; mergeable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moot.metrics.distribution import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Means and variances of K quantities, each over its known observations.

    Attributes:
        n: `(K,)`, number of known values.
        mean: `(K,)`, 0 where n is 0.
        m2: `(K,)`, sum of squared deviations from the mean.

    Source: Chan, Golub, LeVeque (1983), the pairwise update.

    >>> both = Moments.of(np.array([[1.0], [2.0]])).merge(Moments.of(np.array([[6.0]])))
    >>> both.known_mean().tolist(), both.variance().tolist()
    ([3.0], [4.666666666666667])
    """

    n: Floats
    mean: Floats
    m2: Floats

    @classmethod
    def empty(cls, size: int) -> Moments:
        """Moments of no observation."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(size))

    @classmethod
    def of(cls, observations: Floats) -> Moments:
        """Moments of observations `(R, K)`; NaN is unknown."""
        known = ~np.isnan(observations)
        n = known.sum(axis=0, dtype=np.float64)
        mean = _quotient(np.where(known, observations, 0.0).sum(axis=0), n)
        deviation = np.where(known, observations - mean, 0.0)
        shift = _quotient(deviation.sum(axis=0), n)  # rounding error of the mean
        return cls(n, mean + shift, np.maximum((deviation**2).sum(axis=0) - n * shift**2, 0.0))

    def merge(self, other: Moments) -> Moments:
        """Moments of both sets of observations."""
        n = self.n + other.n
        deviation = other.mean - self.mean
        share = _quotient(other.n, n)
        mean = np.where(self.n > 0, self.mean + deviation * share, other.mean)
        return Moments(n, mean, self.m2 + other.m2 + deviation**2 * self.n * share)

    def known_mean(self) -> Floats:
        """Means `(K,)`; NaN where no value is known."""
        return np.where(self.n > 0, self.mean, np.nan)

    def variance(self) -> Floats:
        """Population variances `(K,)`; NaN where no value is known."""
        return np.where(self.n > 0, _quotient(self.m2, self.n), np.nan)


def _quotient(total: Floats, n: Floats) -> Floats:
    """Quotient `total / n`; 0 where n is 0."""
    return np.divide(total, n, out=np.zeros_like(n), where=n > 0)


_FEWEST = 3


@dataclass(frozen=True, slots=True, eq=False)
class CoMoments:
    """Co-moments of every pair of feature and target, over pairwise complete observations.

    Every array is `(F, T)`, because the complete observations differ from pair to pair.

    Attributes:
        n: number of observations in which both are known.
        mean_x: mean of the feature, 0 where n is 0.
        mean_y: mean of the target, 0 where n is 0.
        m2_x: sum of squared deviations of the feature.
        m2_y: sum of squared deviations of the target.
        c: sum of products of the deviations.

    Source: Chan, Golub, LeVeque (1983); Pebay (2008) eq. 3.11 for the product.

    >>> x, y = np.array([[0.0], [1.0], [2.0], [np.nan]]), np.array([[1.0], [3.0], [5.0], [9.0]])
    >>> seen = CoMoments.of(x[:2], y[:2]).merge(CoMoments.of(x[2:], y[2:]))
    >>> seen.n.tolist(), seen.correlation().round(12).tolist()
    ([[3.0]], [[1.0]])
    """

    n: Floats
    mean_x: Floats
    mean_y: Floats
    m2_x: Floats
    m2_y: Floats
    c: Floats

    @classmethod
    def empty(cls, features: int, targets: int) -> CoMoments:
        """Co-moments of no observation."""
        return cls(*(np.zeros((features, targets)) for _ in range(6)))

    @classmethod
    def of(cls, x: Floats, y: Floats) -> CoMoments:
        """Co-moments of features `(R, F)` and targets `(R, T)`; NaN is unknown."""
        origin_x, x, known_x = _centred(x)
        origin_y, y, known_y = _centred(y)
        n = known_x.T @ known_y
        per_n = np.divide(1.0, n, out=np.zeros_like(n), where=n > 0)
        sum_x, sum_y = x.T @ known_y, known_x.T @ y
        m2_x = np.maximum((x**2).T @ known_y - sum_x**2 * per_n, 0.0)
        m2_y = np.maximum(known_x.T @ y**2 - sum_y**2 * per_n, 0.0)
        mean_x = np.where(n > 0, origin_x[:, np.newaxis] + sum_x * per_n, 0.0)
        mean_y = np.where(n > 0, origin_y + sum_y * per_n, 0.0)
        return cls(n, mean_x, mean_y, m2_x, m2_y, x.T @ y - sum_x * sum_y * per_n)

    def merge(self, other: CoMoments) -> CoMoments:
        """Co-moments of both sets of observations."""
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        shift_x, shift_y = other.mean_x - self.mean_x, other.mean_y - self.mean_y
        weight = self.n * share
        return CoMoments(
            n,
            np.where(self.n > 0, self.mean_x + shift_x * share, other.mean_x),
            np.where(self.n > 0, self.mean_y + shift_y * share, other.mean_y),
            self.m2_x + other.m2_x + shift_x**2 * weight,
            self.m2_y + other.m2_y + shift_y**2 * weight,
            self.c + other.c + shift_x * shift_y * weight,
        )

    def correlation(self) -> Floats:
        """Pearson's correlation `(F, T)`, in [-1, 1]; NaN if a variable is constant or n is below 3."""
        product = np.sqrt(self.m2_x) * np.sqrt(self.m2_y)
        defined = (self.n >= _FEWEST) & (product > 0)
        r: Floats = np.divide(self.c, product, out=np.full_like(self.c, np.nan), where=defined)
        return r.clip(-1.0, 1.0)


def _centred(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Centred values.

    Values are first shifted by the first known one, so that a constant column becomes exactly 0.

    Returns:
        The means `(K,)`; the centred values, 0 where unknown; and 1 where known, else 0.
    """
    known = ~np.isnan(values)
    rows = np.argmax(known, axis=0) if len(values) else np.zeros(values.shape[1], np.int64)
    first = values[rows, np.arange(values.shape[1])] if len(values) else np.zeros(values.shape[1])
    first = np.where(np.isnan(first), 0.0, first)
    shifted = np.where(known, values - first, 0.0)
    n = known.sum(axis=0)
    mean = np.divide(shifted.sum(axis=0), n, out=np.zeros(values.shape[1]), where=n > 0)
    return first + mean, np.where(known, shifted - mean, 0.0), known.astype(np.float64)
