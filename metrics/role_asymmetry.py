"""Role asymmetry: whether a feature is associated more strongly with the outcomes of one role than of another.

Comparing the best values of two roles is not a test, because each is a maximum over many features. The test compares
the SAME feature in both roles. Roles often share cases (both sides of a debate), so each case is drawn for both roles
at once.
"""

import math
from dataclasses import dataclass

import numpy as np

from moot.metrics.cluster_bootstrap import bootstrap_error
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import t_quantile


@dataclass(frozen=True, slots=True)
class RoleResamples:
    """Paired resamples of the associations of two roles, over the cases of either.

    Attributes:
        first, second: `(resamples, F, T)`, rho or `AUROC - 0.5`; 0 for no association.
        observed_first, observed_second: `(F, T)`, those of the data.
        clusters: number of cases that were drawn.
    """

    first: Floats
    second: Floats
    observed_first: Floats
    observed_second: Floats
    clusters: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """Contrast of the first role with the second, with its 95 % interval.

    Attributes:
        value, low, high: `(F, T)`; NaN if undefined.
    """

    value: Floats
    low: Floats
    high: Floats


def association_difference(roles: RoleResamples) -> Contrast:
    """Difference of `|association|`, first role minus second, for each feature and target.

    In the resamples each association is multiplied by its sign in the data: absolute values would bias small
    associations upwards. The interval is Student's t, with the standard error of the resamples.

    Returns:
        `(F, T)`; NaN if a role has no association, or fewer than half of the resamples have both. No interval for fewer
        than `moot.metrics.jackknife.LEAST_CLUSTERS` cases.
    """
    sign_a, sign_b = (np.where(observed < 0.0, -1.0, 1.0) for observed in (roles.observed_first, roles.observed_second))
    value = sign_a * roles.observed_first - sign_b * roles.observed_second
    error = bootstrap_error(sign_a * roles.first - sign_b * roles.second, roles.clusters)
    reach = t_quantile(roles.clusters, 0.95) * error
    return Contrast(np.asarray(value), np.asarray(value - reach), np.asarray(value + reach))


def ratio_of_maxima(roles: RoleResamples) -> float:
    """Ratio, first role over second, of the largest `|association|` over features, averaged over the targets.

    Both maxima are biased upwards, more so for less data or a weaker association, which biases the ratio towards 1. It
    has no interval for that reason. To test, use `association_difference` of a fixed feature.

    Returns:
        Above 1 if the first role has the larger associations. Targets that are undefined in the data of a role are left
        out; NaN if none remains.
    """
    targets = ~(np.isnan(roles.observed_first).all(axis=0) | np.isnan(roles.observed_second).all(axis=0))
    first, second = (
        np.nan_to_num(np.abs(values[:, targets])).max(axis=0, initial=0.0).sum()
        for values in (roles.observed_first, roles.observed_second)
    )
    return float(first / second) if second > 0.0 else math.nan
