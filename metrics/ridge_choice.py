"""How strongly a logistic regression on many predictors is held in check, chosen on groups it has not seen.

For predictors of one scale, such as the coordinates of unit vectors: they are taken as they are.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.distribution import Floats
from moot.metrics.grouped_folds import balanced_folds
from moot.metrics.logistic_regression import LogisticModel, fit_logistic
from moot.metrics.pairwise_complete import Numbers
from moot.metrics.succession import bounded, least_probability

RIDGES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Penalties to choose from, strongest first. On unit vectors the first leaves little but the share of ones."""


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A logistic regression whose penalty was chosen.

    Attributes:
        model: fitted to all rows.
        ridge: its penalty, one of `RIDGES`.
        log_losses: `(len(RIDGES),)`, the held-out mean of `-log p(outcome)` of each, nats.
        least: no probability below this is given, nor one above 1 less it; see `least_probability`.
    """

    model: LogisticModel
    ridge: float
    log_losses: Floats
    least: float

    def probability(self, predictors: Floats) -> Floats:
        """The probability of 1 for rows `(n, k)`, within the bounds."""
        return bounded(self.model.probability(predictors), self.least)


def fit_chosen(
    predictors: npt.ArrayLike, outcome: npt.ArrayLike, groups: npt.ArrayLike, folds: int = 5, seed: int = 0
) -> ChosenModel:
    """Fit with the penalty whose held-out log-loss is least; of equal ones the strongest.

    The log-loss punishes certainty that the held-out groups do not bear out, so noise is given next to no weight.

    Args:
        predictors: `(n, k)`, finite, of one scale.
        outcome: `(n,)`, of 0 and 1.
        groups: `(n,)`, of any sortable type; a group is in one fold.
        folds, seed: see `balanced_folds`.

    Raises:
        ValueError: for shapes that do not fit, fewer groups than folds, or an outcome that fewer than two groups have.

    Source: Stone, JRSS B 1974; Le Cessie and van Houwelingen, "Ridge estimators in logistic regression", 1992.

    >>> x = np.random.default_rng(0).normal(size=(60, 3)) / 10.0
    >>> chosen = fit_chosen(x, x[:, 0] > 0, np.arange(60))
    >>> chosen.ridge < 0.1, round(float(chosen.probability(np.array([[9.0, 0.0, 0.0]])).item()), 4)
    (True, 0.9839)
    """
    rows, ones = np.asarray(predictors, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(ones):
        raise ValueError(f"one row of predictors for each of {len(ones)} outcomes expected, not {rows.shape}")
    least = least_probability(len(np.unique(np.asarray(groups))))
    fold = balanced_folds(groups, ones, folds, seed)
    losses = _held_out_losses(_few_columns(rows), ones, fold, least)
    ridge = RIDGES[int(losses.argmin())]
    return ChosenModel(fit_logistic(rows, ones, ridge=ridge, standardise=False), ridge, losses, least)


def held_out_probabilities(
    predictors: npt.ArrayLike, outcome: npt.ArrayLike, groups: npt.ArrayLike, fold: Numbers, folds: int, seed: int = 0
) -> Floats:
    """Each row's probability by a model that has not seen its fold, its penalty chosen without it, too.

    Args:
        predictors, outcome, groups: as for `fit_chosen`.
        fold: `(n,)`, whole numbers; a group is in one fold.
        folds, seed: of the choice inside each training part; fewer where it has fewer groups.

    Returns:
        `(n,)`.

    Raises:
        ValueError: as `fit_chosen` for one of the training parts.
    """
    rows, ones = np.asarray(predictors, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    group, p = np.asarray(groups), np.empty(len(ones))
    rows = _few_columns(rows)
    for number in np.unique(fold):
        out = fold == number
        inner = min(folds, len(np.unique(group[~out])))
        p[out] = fit_chosen(rows[~out], ones[~out], group[~out], inner, seed).probability(rows[out])
    return p


def _held_out_losses(rows: Floats, ones: Floats, fold: Numbers, least: float) -> Floats:
    """The mean log-loss of every penalty on the rows that its fit has not seen."""
    p = np.empty((len(RIDGES), len(ones)))
    for number in np.unique(fold):
        out = fold == number
        model: LogisticModel | None = None
        for place, ridge in enumerate(RIDGES):
            model = fit_logistic(rows[~out], ones[~out], ridge=ridge, standardise=False, start=model)
            p[place, out] = bounded(model.probability(rows[out]), least)
    return np.asarray(
        -(scipy.special.xlogy(ones, p) + scipy.special.xlogy(1.0 - ones, 1.0 - p)).mean(axis=1), dtype=np.float64
    )


def _few_columns(rows: Floats) -> Floats:
    """The rows turned into as many columns as there are rows, if they have more: a ridge sees lengths and angles only,
    which that leaves as they are."""
    if rows.shape[1] <= len(rows):
        return rows
    left, sizes, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(left * sizes, dtype=np.float64)
