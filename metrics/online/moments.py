"""Count, mean and spread of many quantities at once, mergeable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of K quantities, each over the observations in which it is known.

    Attributes:
        n: `(K,)`, known values.
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
        """Of no observation."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(size))

    @classmethod
    def of(cls, observations: Floats) -> Moments:
        """Of observations `(R, K)`; NaN is unknown."""
        known = ~np.isnan(observations)
        n = known.sum(axis=0, dtype=np.float64)
        mean = _over(np.where(known, observations, 0.0).sum(axis=0), n)
        apart = np.where(known, observations - mean, 0.0)
        shift = _over(apart.sum(axis=0), n)  # what rounding left in the mean
        return cls(n, mean + shift, np.maximum((apart**2).sum(axis=0) - n * shift**2, 0.0))

    def merge(self, other: Moments) -> Moments:
        """Of both together."""
        n = self.n + other.n
        apart = other.mean - self.mean
        share = _over(other.n, n)
        mean = np.where(self.n > 0, self.mean + apart * share, other.mean)
        return Moments(n, mean, self.m2 + other.m2 + apart**2 * self.n * share)

    def known_mean(self) -> Floats:
        """`(K,)`, NaN where nothing is known."""
        return np.where(self.n > 0, self.mean, np.nan)

    def variance(self) -> Floats:
        """`(K,)`, of the population; NaN where nothing is known."""
        return np.where(self.n > 0, _over(self.m2, self.n), np.nan)


def _over(total: Floats, n: Floats) -> Floats:
    """`total / n`, 0 where n is 0."""
    return np.divide(total, n, out=np.zeros_like(n), where=n > 0)
