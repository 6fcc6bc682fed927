"""Role asymmetry: whether a feature is associated more strongly with the outcomes of one role than of another.

Comparing the best values of two roles is not a test, because each is a maximum over many features. The test compares
the SAME feature in both roles; the ratio of the best values repeats the selection in every resample. Roles often share
cases (both sides of a debate), so each case is drawn for both roles at once.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from moot.metrics.distribution import Floats


@dataclass(frozen=True, slots=True)
class RoleResamples:
    """Paired resamples of the associations of two roles, over the cases of either.

    Attributes:
        first, second: `(resamples, F, T)`, rho or `AUROC - 0.5`; 0 for no association.
        observed_first, observed_second: `(F, T)`, those of the data.
    """

    first: Floats
    second: Floats
    observed_first: Floats
    observed_second: Floats


@dataclass(frozen=True, slots=True)
class Contrast:
    """Contrast of the first role with the second, with its 95 % interval.

    Attributes:
        value, low, high: `(F, T)` for a difference, zero-dimensional arrays for a ratio; NaN if undefined.
    """

    value: Floats
    low: Floats
    high: Floats


def association_difference(roles: RoleResamples) -> Contrast:
    """Difference of `|association|`, first role minus second, for each feature and target.

    In the resamples each association is multiplied by its sign in the data: absolute values would bias small
    associations upwards. The interval is normal, with the standard deviation of the resamples. If both associations are
    near 0 the difference is one of absolute values, and its interval around 0 is too narrow.

    Returns:
        `(F, T)`; NaN if a role has no association, or fewer than half of the resamples have both.
    """
    sign_a, sign_b = (np.where(observed < 0.0, -1.0, 1.0) for observed in (roles.observed_first, roles.observed_second))
    value = sign_a * roles.observed_first - sign_b * roles.observed_second
    return _normal(sign_a * roles.first - sign_b * roles.second, value)


def ratio_of_maxima(roles: RoleResamples) -> Contrast:
    """Ratio, first role over second, of the largest `|association|` over features, averaged over the targets.

    The feature is selected in each role and resample, so that the interval includes the selection; it is normal for the
    logarithm. Both maxima are biased upwards, more so for less data or a weaker association, which biases the ratio
    towards 1. To test, use `association_difference` of a fixed feature.

    Returns:
        Zero-dimensional arrays; above 1 if the first role has the larger associations. Targets that are undefined in
        the data of a role are left out; NaN if none remains.
    """
    targets = ~(np.isnan(roles.observed_first).all(axis=0) | np.isnan(roles.observed_second).all(axis=0))
    largest = [
        np.nan_to_num(np.abs(values[..., targets])).max(axis=-2, initial=0.0).sum(axis=-1)
        for values in (roles.observed_first, roles.observed_second, roles.first, roles.second)
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        value, drawn = np.log(largest[0] / largest[1]), np.log(largest[2] / largest[3])
    result = _normal(np.where(np.isfinite(drawn), drawn, np.nan), np.asarray(value))
    return Contrast(np.exp(result.value), np.exp(result.low), np.exp(result.high))


def _normal(resamples: Floats, value: Floats) -> Contrast:
    """Normal 95 % interval of an unbounded value, with the standard deviation of the resamples."""
    known = ~np.isnan(resamples)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, resamples, 0.0).sum(axis=0) / count
        sd = np.sqrt(np.where(known, (resamples - mean) ** 2, 0.0).sum(axis=0) / (count - 1))
    half_width = np.where(2 * count >= len(resamples), NormalDist().inv_cdf(0.975) * sd, np.nan)
    return Contrast(np.asarray(value), np.asarray(value - half_width), np.asarray(value + half_width))
