"""Feature sweep: the association of every feature with every target, by stratum, with n, interval, p and q."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from moot.deploy.results.analysis.replies import ReplyFeatures, Stratum, settings_of
from moot.deploy.results.analysis.settings import AnalysisSettings
from moot.metrics.class_separation import auroc_matrix, point_biserial_matrix, within_groups_auroc
from moot.metrics.cluster_bootstrap import (
    Weights,
    bootstrap_error,
    cluster_weights,
    resampled_auroc,
    resampled_spearman,
)
from moot.metrics.cluster_permutation import Statistic, permutation_test
from moot.metrics.confidence_features import Feature
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import bounded_interval
from moot.metrics.rank_correlation import (
    kendall_matrix,
    pairwise_n,
    partial_spearman,
    spearman_matrix,
    within_groups_spearman,
)
from moot.metrics.significance import benjamini_hochberg


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Associations of one kind in one stratum.

    Arrays have the shape `(F + 1, T)` unless stated otherwise; the last row is the baseline, the reply's length.

    Attributes:
        stratum: the stratum.
        kind: `spearman` for ordinal targets, or `auroc` for binary targets (directed: above .5 when high values of the
            feature go with yes).
        features: the F features, without the baseline.
        targets: names of the T targets.
        n: number of replies with both feature and target.
        rarer: number of replies of the rarer class of a binary target; n for other targets.
        value: the association; NaN where it is undefined.
        low, high: 95 % interval of the association, by cluster bootstrap.
        second: Kendall's tau-b for `spearman`, the point-biserial correlation for `auroc`.
        given_length: partial rank correlation given the reply's length, of both kinds.
        within_openings: association within groups of replies with the same opening.
        p: p-value by permutation of clusters.
        max_p: p-value against the largest association over the features of one signal and origin; NaN for features of
            too few replies.
        q: Benjamini-Hochberg over the whole sweep; NaN for the baseline.
        movable: share of the replies in exchangeable groups, shape `(T,)`; at 0 there are no p-values.
        resampled: association in each of B resamples, shape `(B, F + 1, T)`.
        clusters: number of clusters of the stratum.
    """

    stratum: Stratum
    kind: Statistic
    features: tuple[Feature, ...]
    targets: tuple[str, ...]
    n: npt.NDArray[np.int64]
    rarer: npt.NDArray[np.int64]
    value: Floats
    low: Floats
    high: Floats
    second: Floats
    given_length: Floats
    within_openings: Floats
    p: Floats
    max_p: Floats
    q: Floats
    movable: Floats
    resampled: Floats
    clusters: int

    def enough(self, settings: AnalysisSettings) -> npt.NDArray[np.bool_]:
        """Whether each feature has enough replies to be ranked for each target, shape `(F + 1, T)`."""
        least = settings.least_n if self.kind == "spearman" else settings.least_class
        return (self.n >= settings.least_n) & (self.rarer >= least)

    @property
    def strength(self) -> Floats:
        """Strength: |rho| in [0, 1], or the AUROC's distance from one half in [0, .5]."""
        return np.abs(self.value - (0.5 if self.kind == "auroc" else 0.0))


def feature_blocks(features: Sequence[Feature]) -> Iterator[tuple[str, str, npt.NDArray[np.int64]]]:
    """Blocks of features as (signal, origin, indices of the features); the papers' sweep is one block."""
    keys = [(feature.signal, feature.origin) for feature in features]
    for key in dict.fromkeys(keys):
        yield *key, np.array([number for number, other in enumerate(keys) if other == key], np.int64)


def run_sweep(measured: ReplyFeatures, strata: Sequence[Stratum], settings: AnalysisSettings) -> list[Sweep]:
    """Sweeps of the strata with at least `settings.too_few` replies with features."""
    kinds: list[tuple[Statistic, Mapping[str, Floats]]] = [
        ("spearman", measured.replies.ordinal),
        ("auroc", measured.replies.binary),
    ]
    found = []
    for _, members in settings_of(strata):
        # The roles of one setting share their resamples: a case is drawn for all its roles at once.
        group = measured.replies.group
        clusters = np.unique(np.concatenate([group[stratum.rows] for stratum in members]))
        weights = cluster_weights(clusters, settings.resamples, settings.seed)
        for stratum in members:
            if int(np.isfinite(measured.x[stratum.rows]).any(axis=1).sum()) < settings.too_few:
                continue
            drawn = weights[:, np.searchsorted(clusters, group[stratum.rows])]
            for kind, targets in kinds:
                of_stratum = {name: values[stratum.rows] for name, values in targets.items()}
                known = {name: values for name, values in of_stratum.items() if np.isfinite(values).any()}
                if known:
                    found.append(_sweep(measured, stratum, kind, known, drawn, settings))
    return _with_q(found)


def _sweep(
    measured: ReplyFeatures,
    stratum: Stratum,
    kind: Statistic,
    targets: Mapping[str, Floats],
    weights: Weights,
    settings: AnalysisSettings,
) -> Sweep:
    rows = stratum.rows
    length = measured.length[rows]
    x = np.column_stack([measured.x[rows], length])
    y = np.column_stack(list(targets.values()))
    openings = measured.replies.opening[rows].astype(str)
    ranked = kind == "spearman"
    value = spearman_matrix(x, y) if ranked else _varied(auroc_matrix(x, y), x, y)
    resampled = (resampled_spearman if ranked else resampled_auroc)(x, y, weights)
    clusters = len(np.unique(measured.replies.group[rows]))
    low, high = bounded_interval(value, bootstrap_error(resampled, clusters), clusters, lowest=-1.0 if ranked else 0.0)
    n = pairwise_n(x, y)
    rarer = n if ranked else np.minimum(pairwise_n(x, _only(y, 1.0)), pairwise_n(x, _only(y, 0.0)))
    if not ranked:  # resamples of a class with very few replies underestimate the variance
        low, high = (np.where(rarer >= settings.least_class, end, np.nan) for end in (low, high))
    p, max_p, movable = _tests(measured, stratum, x, y, n, kind, settings)
    return Sweep(
        stratum=stratum,
        kind=kind,
        features=measured.features,
        targets=tuple(targets),
        n=n,
        rarer=rarer,
        value=value,
        low=low,
        high=high,
        second=kendall_matrix(x, y) if ranked else point_biserial_matrix(x, y),
        given_length=partial_spearman(x, y, length),
        within_openings=(within_groups_spearman if ranked else within_groups_auroc)(x, y, openings),
        p=p,
        max_p=max_p,
        movable=movable,
        q=np.full(value.shape, np.nan),
        resampled=resampled,
        clusters=clusters,
    )


def _tests(
    measured: ReplyFeatures,
    stratum: Stratum,
    x: Floats,
    y: Floats,
    n: npt.NDArray[np.int64],
    kind: Statistic,
    settings: AnalysisSettings,
) -> tuple[Floats, Floats, Floats]:
    """Permutation tests of a sweep: its `p`, `max_p` and `movable`.

    Features of few replies are excluded from the maximum, because by chance they have the largest associations.
    """
    clusters, slots = measured.replies.group[stratum.rows], measured.replies.slot[stratum.rows].astype(str)
    p, max_p = np.full(n.shape, np.nan), np.full(n.shape, np.nan)
    movable = np.zeros(y.shape[1])
    for targets, enough in targets_by_features(n >= settings.least_n):
        parts = [numbers[enough[numbers]] for _, _, numbers in feature_blocks(measured.features)]
        for numbers in [*parts, np.flatnonzero(~enough[:-1]), np.array([x.shape[1] - 1])]:
            if not len(numbers):
                continue
            tested = permutation_test(
                x[:, numbers], y[:, targets], clusters, settings.permutations, settings.seed, kind, slots
            )
            where = np.ix_(numbers, targets)
            p[where] = tested.p_value
            max_p[where] = np.where(enough[numbers][:, np.newaxis], tested.max_p_value, np.nan)
            movable[targets] = tested.movable
    return p, max_p, movable


def targets_by_features(enough: npt.NDArray[np.bool_]) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """Groups of targets for which the same features have enough replies: their indices, and a mask of the features."""
    masks, kind = np.unique(enough, axis=1, return_inverse=True)
    for number in range(masks.shape[1]):
        yield np.flatnonzero(kind.ravel() == number), masks[:, number]


def _only(flags: Floats, value: float) -> Floats:
    """Flags that equal a value; NaN elsewhere."""
    return np.where(flags == value, flags, np.nan)


def _varied(area: Floats, x: Floats, y: Floats) -> Floats:
    """AUROC; NaN where the feature does not vary over the replies with both, because .5 is then no observation."""
    ranges = np.stack([_spread(x[~np.isnan(target)]) for target in y.T], axis=1)
    return np.where(ranges > 0.0, area, np.nan)


def _spread(x: Floats) -> Floats:
    """Range of the known values, shape `(F,)`; 0 without any."""
    least, greatest = np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0)
    return np.asarray(np.nan_to_num(greatest - least), np.float64)


def _with_q(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """Sweeps with q-values: Benjamini-Hochberg over all tests of all strata, without the baselines."""
    if not sweeps:
        return []
    adjusted = benjamini_hochberg(np.concatenate([each.p[:-1].ravel() for each in sweeps]))
    found, at = [], 0
    for each in sweeps:
        count = each.p[:-1].size
        q = np.full(each.p.shape, np.nan)
        q[:-1] = adjusted[at : at + count].reshape(each.p[:-1].shape)
        found.append(replace(each, q=q))
        at += count
    return found
