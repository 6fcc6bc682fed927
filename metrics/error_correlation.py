"""Whether two raters of the same cases err together, and how many independent ones they are worth."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats, Values, values

ERROR_PAIRS = 4
"""Columns of the counts: neither errs, only the second, only the first, both."""


def error_pairs(first: npt.ArrayLike | Sequence[bool | None], second: npt.ArrayLike | Sequence[bool | None]) -> Floats:
    """Who errs on each case, as a row of `ERROR_PAIRS` columns of which one is 1; the columns' sums are the counts.

    Args:
        first, second: `(n,)`, whether each rater errs on each case: True or False (1 or 0); NaN (or None) when unknown.

    Returns:
        `(n, 4)`; a case on which one of the two is unknown has a row of 0. Sum it, or resample its sums with
        `metrics.cluster_bootstrap.resampled_sums`.

    Raises:
        ValueError: if the inputs are not two vectors of one length, or hold anything but true, false and unknown.

    >>> error_pairs([True, True, False], [True, False, None]).sum(axis=0).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    one, other = (np.asarray(errors, dtype=np.float64) for errors in (first, second))
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"two vectors of one length expected, not {one.shape} and {other.shape}")
    for errors in (one, other):
        if not np.isin(errors[~np.isnan(errors)], (0.0, 1.0)).all():
            raise ValueError("an error is true, false or unknown")
    known = np.flatnonzero(~np.isnan(one + other))
    found = np.zeros((len(one), ERROR_PAIRS))
    found[known, (2.0 * one[known] + other[known]).astype(np.intp)] = 1.0
    return found


def error_correlation(counts: npt.ArrayLike) -> Values:
    """Pearson's correlation of two raters' error indicators.

    Args:
        counts: `(..., 4)`, sums of `error_pairs`.

    Returns:
        rho, `(...)`, in [-1, 1]: 0 when their errors have nothing to do with each other, 1 when they err on the same
        cases. Its reach is less where they err differently often. NaN when one of them always errs or never does:
        nothing is known of how errors go together then.

    Raises:
        ValueError: if the last axis has another length.

    Source: Pearson, 1900 (the phi coefficient of a table of two by two).

    >>> round(error_correlation([2, 0, 1, 1]), 4)
    0.5774
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim < 1 or table.shape[-1] != ERROR_PAIRS:
        raise ValueError(f"counts of (..., {ERROR_PAIRS}) expected, not {table.shape}")
    neither, only_second, only_first, both = np.moveaxis(table, -1, 0)
    margins = (both + only_first) * (neither + only_second) * (both + only_second) * (neither + only_first)
    apart = both * neither - only_first * only_second
    rho = np.divide(apart, np.sqrt(margins), out=np.full(margins.shape, np.nan), where=margins > 0.0)
    return values(np.clip(rho, -1.0, 1.0))


def effective_raters(rho: float, raters: int) -> float:
    """How many independent raters have the VARIANCE that the mean of `raters` correlated ones has.

    `n / (1 + (n - 1) rho)`, rho the mean correlation of their errors. It says how much averaging them steadies the
    mean, and nothing of how probable a wrong one is: it must not be put into a bound for independent ones, as
    Hoeffding's.

    Args:
        rho: in [-1, 1]; NaN when unknown.
        raters: n, at least 1.

    Returns:
        A number above 0: n for rho = 0, 1 for rho = 1, more than n for errors that offset each other. NaN when rho is
        unknown, or so far below 0 that no variance would be left (`rho <= -1 / (n - 1)`).

    Raises:
        ValueError: for fewer than one rater, or a rho outside [-1, 1].

    Source: Kish, Survey Sampling, 1965 (the design effect).

    >>> effective_raters(0.0, 2), effective_raters(1.0, 2), effective_raters(0.6, 2)
    (2.0, 1.0, 1.25)
    """
    if raters < 1:
        raise ValueError(f"at least one rater, not {raters}")
    if abs(rho) > 1.0:
        raise ValueError(f"a correlation lies in [-1, 1], not {rho:g}")
    left = 1.0 + (raters - 1) * rho
    return raters / left if left > 0.0 else math.nan
