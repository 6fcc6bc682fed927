"""Role asymmetry: whether a feature is associated more strongly with the outcomes of one role than of another.

The larger of two best values is no test: each is the luckiest of its sweep. So the SAME feature is compared in both
roles, and a ratio of best values is shown with the choice repeated in every resample. Roles often share their cases
(both sides speak in one debate), so a case is drawn for both at once.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from moot.metrics.distribution import Floats


@dataclass(frozen=True, slots=True)
class RoleResamples:
    """Paired resamples of the associations of two roles, over the cases that either has.

    Attributes:
        first, second: `(resamples, F, T)`, rho or `AUROC - 1/2`; 0 for none.
        observed_first, observed_second: `(F, T)`, the same of the data.
    """

    first: Floats
    second: Floats
    observed_first: Floats
    observed_second: Floats


@dataclass(frozen=True, slots=True)
class Contrast:
    """Contrast of the first role with the second, with its 95 % interval.

    Attributes:
        value, low, high: `(F, T)` each for a difference, plain numbers in arrays `()` for a ratio; NaN where undefined.
    """

    value: Floats
    low: Floats
    high: Floats


def association_difference(roles: RoleResamples) -> Contrast:
    """Difference of `|association|`, first role minus second, for each feature and target.

    In the resamples each role keeps the sign that it has in the data: a fold at 0 would push both sizes up, most where
    there is least. The interval is normal with the resamples' standard deviation; where both associations are near 0
    the difference itself is folded and its interval too narrow around no difference.

    Returns:
        `(F, T)`; NaN where either role has no association, or fewer than half of the resamples have both.
    """
    sign_a, sign_b = (np.where(observed < 0.0, -1.0, 1.0) for observed in (roles.observed_first, roles.observed_second))
    value = sign_a * roles.observed_first - sign_b * roles.observed_second
    return _normal(sign_a * roles.first - sign_b * roles.second, value)


def ratio_of_maxima(roles: RoleResamples) -> Contrast:
    """Ratio, first role over second, of the largest `|association|` of any feature, averaged over the targets.

    The feature is chosen again in each role and resample, so the interval includes the selection; it is normal for
    the logarithm. Both maxima are optimistic, the one from less data or a weaker association more so, which draws the
    ratio towards 1: `association_difference` of a fixed feature is the test.

    Returns:
        Plain numbers; above 1 when the first role has the larger ones. Targets that are undefined in a role's data are
        left out; NaN when none is left.
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
    """The 95 % interval of an unbounded value with the resamples' standard deviation."""
    known = ~np.isnan(resamples)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, resamples, 0.0).sum(axis=0) / count
        spread = np.sqrt(np.where(known, (resamples - mean) ** 2, 0.0).sum(axis=0) / (count - 1))
    reach = np.where(2 * count >= len(resamples), NormalDist().inv_cdf(0.975) * spread, np.nan)
    return Contrast(np.asarray(value), np.asarray(value - reach), np.asarray(value + reach))
