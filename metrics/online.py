"""Small accumulators that take values one by one and merge in any order and grouping."""

import math
from dataclasses import dataclass


@dataclass(slots=True)
class Moments:
    """Count, mean and variance of a stream, without keeping it.

    Attributes:
        count: how many values were added.
        mean: their mean, in the values' unit; NaN while there are none.
        m2: the sum of their squared distances from the mean, in the unit squared.

    Source: Welford, Technometrics 1962 (adding); Chan, Golub and LeVeque 1979 (merging).

    >>> moments = Moments()
    >>> for value in (1.0, 2.0, None, 3.0):
    ...     moments.add(value)
    >>> moments.count, moments.mean, round(moments.variance, 4)
    (3, 2.0, 0.6667)
    """

    count: int = 0
    mean: float = math.nan
    m2: float = 0.0

    def add(self, value: float | None) -> None:
        """Take in one value; an unknown one (None or NaN) is left out and not counted.

        Raises:
            ValueError: if the value is infinite.
        """
        if value is None or math.isnan(value):
            return
        if math.isinf(value):
            raise ValueError(f"cannot average {value!r}")
        self.count += 1
        if self.count == 1:
            self.mean = float(value)
            return
        distance = value - self.mean
        self.mean += distance / self.count
        self.m2 += distance * (value - self.mean)

    def merge(self, other: "Moments") -> "Moments":
        """The moments of both streams together, as a new object; neither of the two is changed.

        Associative and commutative up to rounding; empty moments change nothing.
        """
        if not self.count or not other.count:
            one = self if self.count else other
            return Moments(one.count, one.mean, one.m2)
        count = self.count + other.count
        distance = other.mean - self.mean
        return Moments(
            count,
            (self.count * self.mean + other.count * other.mean) / count,
            self.m2 + other.m2 + distance * distance * (self.count * other.count / count),
        )

    @property
    def variance(self) -> float:
        """Population variance, `m2 / count`, in the unit squared, at least 0; NaN without values."""
        return self.m2 / self.count if self.count else math.nan

    @property
    def std(self) -> float:
        """Population standard deviation, in the values' unit, at least 0; NaN without values."""
        return math.sqrt(self.variance)


@dataclass(slots=True)
class Share:
    """How many of n were successes.

    Attributes:
        successes: between 0 and n.
        n: how many outcomes were added.

    Raises:
        ValueError: if created with `successes` that are not between 0 and n.

    >>> share = Share(1, 3)
    >>> share.add(True)
    >>> share.value
    0.5
    """

    successes: int = 0
    n: int = 0

    def __post_init__(self) -> None:
        """Refuse impossible counts."""
        if not 0 <= self.successes <= self.n:
            raise ValueError(f"{self.successes} successes of {self.n}")

    def add(self, success: bool | None) -> None:
        """Take in one outcome; an unknown one (None) is left out and not counted."""
        if success is None:
            return
        self.n += 1
        self.successes += bool(success)

    def merge(self, other: "Share") -> "Share":
        """The share of both together, as a new object; exactly associative and commutative."""
        return Share(self.successes + other.successes, self.n + other.n)

    @property
    def value(self) -> float | None:
        """`successes / n`, in [0, 1]; None while n is 0."""
        return self.successes / self.n if self.n else None
