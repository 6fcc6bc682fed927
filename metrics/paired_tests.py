"""Whether two systems differ in a score per case, such as Brier's; for right and wrong see `significance`.

Two scores of a case that are equal within `ROUNDING` of the greater one are no difference: sums of the same shares in
another order are the same sum, and a steady rounding would pass for a steady effect.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats

Scores = npt.ArrayLike | Sequence[float | None]

_NUMBERS = 2**22  # drawn at once

ROUNDING = 1e-12
"""Relative difference up to which two numbers are the same: some thousand units in the last place."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A two-sided test on pairs.

    Attributes:
        statistic: which, the function says; NaN for n = 0.
        p_value: in (0, 1]; NaN for n = 0.
        n: pairs that both have a known score.
        n_zero: those of them without a difference, but for rounding.
        left_out: pairs with an unknown score.
    """

    statistic: float
    p_value: float
    n: int
    n_zero: int
    left_out: int


def wilcoxon_signed_rank(a: Scores, b: Scores) -> PairedTest:
    """Wilcoxon's signed-rank test: are the differences a - b symmetric around 0?

    Pairs without a difference are left out of the ranking (Wilcoxon's own way) and counted in `n_zero`; tied
    differences share their average rank. For up to 50 differences without ties (13 with) the p-value is exact, beyond
    it is from the normal distribution.

    Args:
        a, b: `(n,)`, scores of the same cases in the same order; NaN (or None) when unknown.

    Returns:
        The test; its statistic is the smaller of the two signed rank sums. The p-value is 1 when no pair differs.

    Raises:
        ValueError: if the inputs are not two vectors of one length.

    Source: Wilcoxon, "Individual comparisons by ranking methods", 1945.

    >>> wilcoxon_signed_rank([1, 2, 3, 4, 5, 6, None], [0, 0, 0, 0, 0, 0, 0]).p_value
    0.03125
    """
    first, second, left_out = _pairs(a, b)
    differences = first - second
    nonzero = differences[differences != 0.0]
    n, n_zero = len(differences), len(differences) - len(nonzero)
    if not len(nonzero):
        return PairedTest(0.0 if n else float("nan"), 1.0 if n else float("nan"), n, n_zero, left_out)
    from scipy.stats import wilcoxon

    found = wilcoxon(nonzero)
    return PairedTest(float(found.statistic), float(found.pvalue), n, n_zero, left_out)


def paired_permutation(a: Scores, b: Scores, *, permutations: int = 10_000, seed: int = 0) -> PairedTest:
    """Permutation test of the mean difference: within a case it is chance which system got which score.

    Args:
        a, b: `(n,)`, scores of the same cases in the same order; NaN (or None) when unknown.
        permutations: how many exchanges to draw; when all `2^n` are no more, all are taken and the test is exact.
        seed: of the draws.

    Returns:
        The test; its statistic is the mean of a - b. A p-value that is drawn is at least `1 / (permutations + 1)`.

    Raises:
        ValueError: if the inputs are not two vectors of one length, or `permutations` is below 1.

    Source: Fisher, The Design of Experiments, 1935, section 21; Phipson and Smyth, 2010, for the count of draws.

    >>> paired_permutation([1, 2, 3, 4, 5], [0, 0, 0, 0, 0]).p_value
    0.0625
    """
    if permutations < 1:
        raise ValueError(f"at least one permutation, not {permutations}")
    first, second, left_out = _pairs(a, b)
    n = len(first)
    n_zero = int((first == second).sum())
    if n == n_zero:
        return PairedTest(0.0 if n else float("nan"), 1.0 if n else float("nan"), n, n_zero, left_out)
    differences = first - second
    observed = abs(differences.sum()) * (1.0 - ROUNDING)
    exact = n < 63 and 2**n <= permutations
    extreme = sum(
        int((np.abs(signs @ differences) >= observed).sum())
        for signs in (_all_signs(n) if exact else _drawn_signs(n, permutations, seed))
    )
    # The data themselves are one of the draws: no p-value that was drawn is 0.
    p_value = extreme / 2**n if exact else (extreme + 1) / (permutations + 1)
    return PairedTest(float(differences.mean()), p_value, n, n_zero, left_out)


def _all_signs(n: int) -> Iterator[Floats]:
    """All 2^n rows of n signs."""
    yield np.where(np.arange(2**n)[:, None] >> np.arange(n) & 1, -1.0, 1.0)


def _drawn_signs(n: int, rows: int, seed: int) -> Iterator[Floats]:
    """Rows of n random signs, so many in all."""
    random = np.random.default_rng(seed)
    at_once = max(1, _NUMBERS // n)
    for start in range(0, rows, at_once):
        drawn = random.integers(0, 2, size=(min(at_once, rows - start), n), dtype=np.bool_)
        yield np.where(drawn, -1.0, 1.0)


def cliffs_delta(a: Scores, b: Scores) -> float:
    """Cliff's delta of two samples, `P(a > b) - P(a < b)` over all pairs of one of each; they need not be paired.

    Args:
        a: `(n,)`, scores; NaN (or None) is left out.
        b: `(m,)`, the same.

    Returns:
        A number in [-1, 1]: 1 when every a is above every b, 0 when neither tends to be. For scores of 0 and 1 it is
        the difference of the means. NaN when either is empty.

    Raises:
        ValueError: if one is no vector.

    Source: Cliff, "Dominance statistics", 1993.

    >>> cliffs_delta([3, 4], [1, 2, 3])
    0.8333333333333334
    """
    first, second = _vector(a), _vector(b)
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    n, m = len(first), len(second)
    if not n or not m:
        return float("nan")
    from scipy.stats import rankdata

    above = float(rankdata(np.concatenate([first, second]))[:n].sum()) - n * (n + 1) / 2
    return (2 * above - n * m) / (n * m)


def cliffs_delta_per_case(a: Scores, b: Scores) -> float:
    """Cliff's delta within cases, the mean of `sign(a_i - b_i)`: how much oftener a has the higher score.

    Args:
        a, b: `(n,)`, scores of the same cases in the same order; pairs with NaN (or None) are left out.

    Returns:
        A number in [-1, 1]; for outcomes of 0 and 1 it is the difference in accuracy. NaN when no pair is known.

    Raises:
        ValueError: if the inputs are not two vectors of one length.

    Source: Cliff, 1993, the "within" dominance d_w.

    >>> cliffs_delta_per_case([1, 1, 0, 1], [0, 1, 0, 0])
    0.5
    """
    first, second, _ = _pairs(a, b)
    return float(np.sign(first - second).mean()) if len(first) else float("nan")


def _vector(scores: Scores) -> Floats:
    """The scores as a vector, NaN when unknown."""
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"a vector of scores expected, not {found.shape}")
    return found


def _pairs(a: Scores, b: Scores) -> tuple[Floats, Floats, int]:
    """The pairs that both have a score, B's being A's where only rounding tells them apart, and how many have not."""
    first, second = _vector(a), _vector(b)
    if first.shape != second.shape:
        raise ValueError(f"{len(first)} scores of A but {len(second)} of B")
    known = ~(np.isnan(first) | np.isnan(second))
    first, second = first[known], second[known]
    same = np.abs(first - second) < ROUNDING * np.maximum(np.abs(first), np.abs(second))  # not where one is infinite
    return first, np.where(same, first, second), int((~known).sum())
