"""Whether two systems measured on the same cases differ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's exact test.

    Attributes:
        statistic: `min(b, c)`, the smaller count of discordant pairs.
        n_discordant: `b + c`.
        p_value: two-sided, in (0, 1].
    """

    statistic: int
    n_discordant: int
    p_value: float


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Two systems' accuracy on the same cases.

    Attributes:
        b: cases that only A got right.
        c: cases that only B got right.
        difference: accuracy of A minus accuracy of B, `(b - c) / n`, in [-1, 1]; NaN for n = 0.
        p_value: of McNemar's exact test, two-sided; NaN for n = 0.
        n: cases on which both outcomes are known.
    """

    b: int
    c: int
    difference: float
    p_value: float
    n: int


def mcnemar_exact(b: int, c: int) -> McNemar:
    """McNemar's test of equal accuracy in pairs, exact at every sample size.

    If both systems are equally good, b of the `b + c` discordant pairs follow a binomial
    distribution with probability 1/2; the p-value is two-sided, `min(1, 2 P(X <= min(b, c)))`.

    Args:
        b: pairs that only the first got right.
        c: pairs that only the second got right.

    Returns:
        The test; without discordant pairs its p-value is 1.

    Raises:
        ValueError: if a count is negative.

    Source: McNemar, Psychometrika 1947, in its exact (binomial) form.

    >>> round(mcnemar_exact(1, 9).p_value, 4)
    0.0215
    """
    if b < 0 or c < 0:
        raise ValueError(f"counts cannot be negative: b = {b}, c = {c}")
    n = b + c
    from scipy.stats import binomtest

    p_value = float(binomtest(b, n, 0.5).pvalue) if n else 1.0
    return McNemar(statistic=min(b, c), n_discordant=n, p_value=p_value)


def paired_difference(correct_a: Sequence[float | None], correct_b: Sequence[float | None]) -> PairedDifference:
    """Accuracy of A minus accuracy of B over the same cases, with McNemar's exact test.

    Args:
        correct_a: `(n,)`, per case whether A was right: True or False (1 or 0), None or NaN if unknown.
        correct_b: `(n,)`, the same for B, in the same order of cases.

    Returns:
        See `PairedDifference`; cases with an unknown outcome of either are left out.

    Raises:
        ValueError: if the lengths differ, or an outcome is neither true, false nor unknown.

    >>> found = paired_difference([True, True, False, True], [True, False, False, None])
    >>> found.b, found.c, found.n, round(found.difference, 3)
    (1, 0, 3, 0.333)
    """
    if len(correct_a) != len(correct_b):
        raise ValueError(f"{len(correct_a)} outcomes of A but {len(correct_b)} of B")
    pairs = [
        (a, b)
        for a, b in zip(map(_outcome, correct_a), map(_outcome, correct_b), strict=True)
        if a is not None and b is not None
    ]
    only_a = sum(1 for a, b in pairs if a and not b)
    only_b = sum(1 for a, b in pairs if b and not a)
    n = len(pairs)
    return PairedDifference(
        b=only_a,
        c=only_b,
        difference=(only_a - only_b) / n if n else math.nan,
        p_value=mcnemar_exact(only_a, only_b).p_value if n else math.nan,
        n=n,
    )


def _outcome(value: float | None) -> bool | None:
    """Right, wrong or unknown."""
    if value is None or math.isnan(value):
        return None
    if value not in (0, 1):
        raise ValueError(f"an outcome is true, false or unknown, not {value!r}")
    return bool(value)
