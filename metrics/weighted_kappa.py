"""Cohen's kappa of two raters, nominal and quadratically weighted: agreement beyond chance.

Functions raise ValueError for vectors of different lengths, a score outside the scale, and weights that do not fit.
"""

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats

_ROUNDING = 1e-12  # relative; below it a denominator is that of two constants


def cohen_kappa(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Cohen's kappa of two raters on nominal categories: `(p_o - p_e) / (1 - p_e)`.

    `p_o` is the share of equal scores and `p_e` that of two raters with these distributions who score independently.

    Args:
        a, b: `(n,)`, the two raters' scores, as numbers; pairs with NaN are left out.

    Returns:
        A number in [-1, 1], 1 for equal scores; NaN when there is no pair, or both give one and the same score always.

    Source: Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 1960.

    >>> round(cohen_kappa([1, 1, 2, 2], [1, 1, 2, 1]), 3)
    0.5
    """
    one, other = _pairs(a, b, -np.inf, np.inf)
    if not len(one):
        return float("nan")
    levels = np.unique([one, other])
    chance = float(sum((one == level).mean() * (other == level).mean() for level in levels))
    return float(((one == other).mean() - chance) / (1.0 - chance)) if chance < 1.0 - _ROUNDING else float("nan")


def quadratic_weighted_kappa(a: npt.ArrayLike, b: npt.ArrayLike, lowest: float, highest: float) -> float:
    """Quadratically weighted kappa (QWK) of two raters.

    With O the shares of the pairs of scores, E = the product of its margins and w_ij = (i - j)^2 it is
    `1 - sum w O / sum w E`; the sums are mean squared differences, so
    `1 - mean (a - b)^2 / (var a + var b + (mean a - mean b)^2)`, with population variances. In that form either side
    may be no whole number: for a mean of several raters it is the same formula, and equals Lin's concordance
    correlation coefficient. Values of such means are comparable among themselves, not with those of single raters:
    a mean varies less.

    Args:
        a, b: `(n,)`, the two raters' scores; pairs with NaN are left out.
        lowest, highest: the ends of the scale. They do not change the value; a score outside is refused.

    Returns:
        A number in [-1, 1], 1 for equal scores; NaN when there is no pair, or both give one and the same score always.

    Sources: Cohen, "Weighted kappa", Psychological Bulletin 1968; Lin, "A concordance correlation coefficient to
    evaluate reproducibility", Biometrics 1989.

    >>> round(quadratic_weighted_kappa([0, 1, 2, 3], [0, 1, 3, 2], 0, 3), 3)
    0.8
    """
    one, other = _pairs(a, b, lowest, highest)
    return float(_kappas(one, other, np.ones((1, len(one))))[0])


def resampled_weighted_kappa(
    a: npt.ArrayLike, b: npt.ArrayLike, weights: npt.ArrayLike, lowest: float, highest: float
) -> Floats:
    """Quadratically weighted kappa of each resample, `(resamples,)`; pair i counts `weights[r, i]` times.

    Args:
        a, b, lowest, highest: as for `quadratic_weighted_kappa`.
        weights: `(resamples, n)`, how often each pair was drawn.
    """
    times = np.asarray(weights, dtype=np.float64)
    known = ~(np.isnan(np.asarray(a, dtype=np.float64)) | np.isnan(np.asarray(b, dtype=np.float64)))
    one, other = _pairs(a, b, lowest, highest)
    if times.ndim != 2 or times.shape[1] != len(known):
        raise ValueError(f"weights of (resamples, {len(known)}) expected, not {times.shape}")
    return _kappas(one, other, times[:, known])


def _pairs(a: npt.ArrayLike, b: npt.ArrayLike, lowest: float, highest: float) -> tuple[Floats, Floats]:
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"two vectors of one length expected, not {one.shape} and {other.shape}")
    known = ~(np.isnan(one) | np.isnan(other))
    one, other = one[known], other[known]
    for scores in (one, other):
        if ((scores < lowest) | (scores > highest)).any():
            raise ValueError(f"scores from {lowest:g} to {highest:g} expected")
    return one, other


def _kappas(one: Floats, other: Floats, times: Floats) -> Floats:
    if not len(one):
        return np.full(len(times), np.nan)
    # moments around a score of the scale: around zero, far from the scores, they would cancel
    origin = one[0]
    x, y = one - origin, other - origin
    sums = times @ np.column_stack([np.ones_like(x), x, y, x * x, y * y, (x - y) ** 2])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y, square_x, square_y, apart = (sums[:, 1:] / sums[:, :1]).T
        # var x + var y + (mean x - mean y)^2, the expected squared difference of two independent draws
        expected = square_x + square_y - 2.0 * mean_x * mean_y
        found = 1.0 - apart / expected
    return np.where(expected > _ROUNDING * (1.0 + square_x + square_y), found, np.nan)
