"""Cohen's kappa of two raters: nominal, and with quadratic weights.

Functions raise ValueError for vectors of different lengths, a score outside the scale, and weights of another shape.
"""

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats

_ROUNDING = 1e-12  # relative; a smaller denominator is rounding: both raters are constant


def cohen_kappa(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Cohen's kappa of two raters on nominal categories: `(p_o - p_e) / (1 - p_e)`.

    `p_o` is the proportion of equal scores, `p_e` the proportion expected from independent raters with the same
    marginal distributions.

    Args:
        a, b: `(n,)`, scores of the two raters, as numbers; pairs with NaN are left out.

    Returns:
        In [-1, 1]; 1 for equal scores. NaN without pairs, or if both raters give the same score throughout.

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

    With O the joint proportions of scores, E the product of their margins and `w_ij = (i - j)^2` it is `1 - sum w O /
    sum w E`, which equals `1 - mean (a - b)^2 / (var a + var b + (mean a - mean b)^2)` with population variances. The
    second form also allows scores that are not whole numbers, such as the mean of several raters; it is Lin's
    concordance correlation coefficient. Do not compare the kappa of such means with that of single raters: a mean has
    less variance.

    Args:
        a, b: `(n,)`, scores of the two raters; pairs with NaN are left out.
        lowest, highest: ends of the scale. They do not affect the value; a score outside raises ValueError.

    Returns:
        In [-1, 1]; 1 for equal scores. NaN without pairs, or if both raters give the same score throughout.

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
    """Quadratically weighted kappa of each resample, `(resamples,)`.

    Args:
        a, b, lowest, highest: as for `quadratic_weighted_kappa`.
        weights: `(resamples, n)`, how often each pair was drawn.
    """
    drawn = np.asarray(weights, dtype=np.float64)
    known = ~(np.isnan(np.asarray(a, dtype=np.float64)) | np.isnan(np.asarray(b, dtype=np.float64)))
    one, other = _pairs(a, b, lowest, highest)
    if drawn.ndim != 2 or drawn.shape[1] != len(known):
        raise ValueError(f"weights of (resamples, {len(known)}) expected, not {drawn.shape}")
    return _kappas(one, other, drawn[:, known])


def _pairs(a: npt.ArrayLike, b: npt.ArrayLike, lowest: float, highest: float) -> tuple[Floats, Floats]:
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"two vectors of equal length expected, not {one.shape} and {other.shape}")
    known = ~(np.isnan(one) | np.isnan(other))
    one, other = one[known], other[known]
    for scores in (one, other):
        if ((scores < lowest) | (scores > highest)).any():
            raise ValueError(f"scores from {lowest:g} to {highest:g} expected")
    return one, other


def _kappas(one: Floats, other: Floats, weights: Floats) -> Floats:
    if not len(one):
        return np.full(len(weights), np.nan)
    # moments about an observed score: about zero they would cancel if the scores are large
    origin = one[0]
    x, y = one - origin, other - origin
    sums = weights @ np.column_stack([np.ones_like(x), x, y, x * x, y * y, (x - y) ** 2])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y, square_x, square_y, observed = (sums[:, 1:] / sums[:, :1]).T
        # var x + var y + (mean x - mean y)^2, the expected squared difference of two independent draws
        expected = square_x + square_y - 2.0 * mean_x * mean_y
        result = 1.0 - observed / expected
    return np.where(expected > _ROUNDING * (1.0 + square_x + square_y), result, np.nan)
