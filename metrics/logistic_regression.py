"""Ridge-penalised logistic regression; the penalty may be selected by grouped cross-validation.

Predictors are `(n, k)` and finite, outcomes `(n,)` of 0 and 1, groups `(n,)` of any sortable type. Functions raise
ValueError for incompatible shapes, an outcome that does not occur (or, in cross-validation, in fewer than two groups),
a penalty that is not above 0, fewer than 2 folds, fewer groups than folds, and a fit that does not converge.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import Numbers, as_codes

RIDGE = 1.0
"""Default penalty: `RIDGE / 2` times the sum of squared coefficients; the inverse of scikit-learn's `C`. Separable
classes get finite coefficients; the effect on a fit to hundreds of rows is small."""

RIDGES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Candidate penalties, strongest first. On unit vectors the first fits little more than the base rate."""

_LEAST_DECREMENT = 1e-12
"""Convergence criterion for Newton's decrement: twice the distance of the penalised log-likelihood to its maximum."""
_ROUNDING = 1e-12  # of a likelihood, relative to the sum of its log-odds; smaller improvements are noise
_MOST_STEPS = 100


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """Fitted logistic regression.

    Attributes:
        intercept: log-odds if all predictors are 0.
        coefficients: `(k,)`, change in log-odds per unit of the predictor; 0 for a constant predictor.
    """

    intercept: float
    coefficients: Floats

    def log_odds(self, predictors: Floats) -> Floats:
        """Log-odds of class 1 for rows `(n, k)`."""
        return np.asarray(self.intercept + predictors @ self.coefficients, dtype=np.float64)

    def probability(self, predictors: Floats) -> Floats:
        """Probability of class 1 for rows `(n, k)`."""
        return np.asarray(scipy.special.expit(self.log_odds(predictors)), dtype=np.float64)


def fit_logistic(
    predictors: npt.ArrayLike, outcome: npt.ArrayLike, *, ridge: float = RIDGE, standardise: bool = True
) -> LogisticModel:
    """Logistic regression by penalised maximum likelihood (Newton's method); k = 0 fits the base rate.

    Args:
        ridge: penalty, above 0; see `RIDGE`.
        standardise: whether to scale each predictor by its standard deviation. Not for the coordinates of unit vectors:
            it would inflate those that hardly vary.

    Source: Le Cessie and van Houwelingen, "Ridge estimators in logistic regression", 1992.

    >>> model = fit_logistic([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> model.probability(np.array([[1.5]])).round(6).tolist(), bool(model.coefficients[0] > 0.0)
    ([0.5], True)
    """
    rows, ones = np.asarray(predictors, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    if not 0.0 < ones.mean() < 1.0:
        raise ValueError("a logistic regression needs both outcomes")
    if not ridge > 0.0:
        raise ValueError(f"the penalty must be above 0, not {ridge:g}")
    coefficients, means, spread = np.zeros(rows.shape[1]), np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    if standardise:
        means, spread = rows.mean(axis=0), rows.std(axis=0)
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(means))
    if not varies.any():
        return LogisticModel(float(scipy.special.logit(ones.mean())), coefficients)
    means, spread = means[varies], spread[varies]
    *result, intercept = _newton((rows[:, varies] - means) / spread, ones, ridge)
    coefficients[varies] = np.array(result) / spread
    return LogisticModel(float(intercept - coefficients[varies] @ means), coefficients)


def _newton(rows: Floats, ones: Floats, ridge: float) -> Floats:
    """Newton's method with step halving: the coefficients `(k,)`, then the intercept, which is not penalised.

    A cross-validation fits thousands of models to a few dozen rows each. The overhead of a general solver would exceed
    the time of the fit.
    """
    columns = np.column_stack([rows, np.ones(len(rows))])
    penalty = np.append(np.full(rows.shape[1], ridge), 0.0)

    def loss(weights: Floats) -> float:
        odds = columns @ weights
        return float(np.logaddexp(0.0, odds).sum() - ones @ odds + penalty @ weights**2 / 2.0)

    weights = np.zeros(len(penalty))
    for _ in range(_MOST_STEPS):
        odds = columns @ weights
        p = scipy.special.expit(odds)
        gradient = columns.T @ (p - ones) + penalty * weights
        half = np.sqrt(p * (1.0 - p))[:, np.newaxis] * columns
        hessian = half.T @ half
        np.fill_diagonal(hessian, hessian.diagonal() + penalty)
        step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(hessian), gradient)
        if gradient @ step < _LEAST_DECREMENT + _ROUNDING * np.abs(odds).sum():
            return np.asarray(weights - step, dtype=np.float64)
        now, size = loss(weights), 1.0
        while loss(weights - size * step) > now * (1.0 + _ROUNDING):
            size /= 2.0
        weights = weights - size * step
    raise ValueError(f"logistic regression did not converge within {_MOST_STEPS} steps")


def grouped_folds(groups: npt.ArrayLike, folds: int, seed: int = 0, outcome: npt.ArrayLike | None = None) -> Numbers:
    """Grouped cross-validation folds: the fold of each row; groups are assigned in random order, in turn.

    Args:
        folds: number of folds, at least 2.
        seed: seed of the random generator.
        outcome: None, or a binary outcome to stratify by: groups are then sorted by their proportion of ones. A
            training set lacks an outcome only if fewer than two groups have it, and its base rate reveals little about
            the held-out fold.

    Returns:
        `(n,)`, 0 to `folds - 1`; the numbers of groups in two folds differ by at most one.

    >>> folds = grouped_folds(["a", "a", "b", "c", "d"], 2)
    >>> int(folds[0] - folds[1]), np.bincount(folds[1:]).tolist()
    (0, [2, 2])
    """
    codes = as_codes(groups, np.size(np.asarray(groups) if outcome is None else np.asarray(outcome)))
    number = int(codes.max()) + 1 if len(codes) else 0
    if folds < 2:
        raise ValueError(f"at least two folds expected, not {folds}")
    if number < folds:
        raise ValueError(f"{number} groups cannot be assigned to {folds} folds")
    drawn = np.random.default_rng(seed).permutation(number)
    if outcome is not None:
        share = np.bincount(codes, np.asarray(outcome, dtype=np.float64)) / np.bincount(codes)
        drawn = drawn[np.argsort(share[drawn], kind="stable")]
    fold_of_group = np.empty(number, dtype=np.intp)
    fold_of_group[drawn] = np.arange(number) % folds
    return fold_of_group[codes]


def least_probability(n: int) -> float:
    """Laplace's rule of succession for an outcome never observed in n independent observations, `1 / (n + 2)`.

    Source: Laplace, Essai philosophique sur les probabilites, 1814.

    >>> least_probability(8)
    0.1
    """
    return 1.0 / (n + 2)


def bounded(p: npt.ArrayLike, least: float) -> Floats:
    """Probabilities clipped to `[least, 1 - least]`.

    >>> bounded([0.0, 0.5, 0.99], 0.1).tolist()
    [0.1, 0.5, 0.9]
    """
    return np.clip(np.asarray(p, dtype=np.float64), least, 1.0 - least)


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """Fitted logistic regression with a penalty selected by cross-validation.

    Attributes:
        model: fitted to all rows.
        ridge: its penalty, one of `RIDGES`.
        log_losses: `(len(RIDGES),)`, mean held-out log-loss of each penalty, nats.
        least: probabilities are clipped to `[least, 1 - least]`; see `least_probability`.
    """

    model: LogisticModel
    ridge: float
    log_losses: Floats
    least: float

    def probability(self, predictors: Floats) -> Floats:
        """Probability of class 1 for rows `(n, k)`, clipped."""
        return bounded(self.model.probability(predictors), self.least)


def fit_chosen(
    predictors: npt.ArrayLike, outcome: npt.ArrayLike, groups: npt.ArrayLike, folds: int = 5, seed: int = 0
) -> ChosenModel:
    """Logistic regression with the penalty of least cross-validated log-loss; of equal ones, the strongest.

    Log-loss penalises confidence that the held-out groups do not confirm, so that noise gets almost no weight.
    Probabilities are clipped at `least_probability` of the number of groups.

    Args:
        predictors: on a common scale, such as the coordinates of unit vectors; they are not standardised.
        folds, seed: see `grouped_folds`; the folds are stratified by the outcome.

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
    fold = grouped_folds(groups, folds, seed, ones)
    rotated, directions = _rotated(rows)
    p = np.empty((len(RIDGES), len(ones)))
    for number in range(folds):
        out = fold == number
        for row, ridge in enumerate(RIDGES):
            model = fit_logistic(rotated[~out], ones[~out], ridge=ridge, standardise=False)
            p[row, out] = bounded(model.probability(rotated[out]), least)
    losses = -np.log(np.where(ones > 0.0, p, 1.0 - p)).mean(axis=1)
    ridge = RIDGES[int(losses.argmin())]
    model = fit_logistic(rotated, ones, ridge=ridge, standardise=False)
    model = LogisticModel(model.intercept, model.coefficients @ directions)
    return ChosenModel(model, ridge, losses, least)


def held_out_probabilities(
    predictors: npt.ArrayLike, outcome: npt.ArrayLike, groups: npt.ArrayLike, fold: Numbers, folds: int, seed: int = 0
) -> Floats:
    """Out-of-fold probabilities, `(n,)`, by nested cross-validation: the penalty is selected without the held-out fold.

    Args:
        predictors, outcome, groups: as for `fit_chosen`.
        fold: `(n,)`, whole numbers; each group is in one fold.
        folds, seed: of the inner cross-validation; fewer folds if the training set has fewer groups.
    """
    rows, _ = _rotated(np.asarray(predictors, dtype=np.float64))
    ones = np.asarray(outcome, dtype=np.float64)
    group, p = np.asarray(groups), np.empty(len(ones))
    for number in np.unique(fold):
        out = fold == number
        inner = min(folds, len(np.unique(group[~out])))
        p[out] = fit_chosen(rows[~out], ones[~out], group[~out], inner, seed).probability(rows[out])
    return p


def _rotated(rows: Floats) -> tuple[Floats, Floats]:
    """Rows in a basis of at most n columns, and the new columns as directions in the original space.

    A rotation keeps lengths and angles, on which alone a ridge penalty depends.
    """
    if rows.shape[1] <= len(rows):
        return rows, np.eye(rows.shape[1])
    left, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(left * sizes, dtype=np.float64), np.asarray(directions, dtype=np.float64)


def fit_platt_scaling(log_odds: npt.ArrayLike, outcome: npt.ArrayLike) -> LogisticModel:
    """Platt scaling: logistic regression of the outcomes on one predictor, the log-odds.

    The slope has a light ridge penalty (`RIDGE`). It is never below 0, so that no answer is reversed.

    Args:
        log_odds: `(n,)`, out-of-fold: the log-odds of rows that a model was fitted to are overconfident.

    Source: Platt, "Probabilistic outputs for support vector machines", 1999.

    >>> scaling = fit_platt_scaling([-9.0, -9.0, -9.0, 9.0, 9.0, 9.0] * 50, [0, 0, 1, 0, 1, 1] * 50)
    >>> round(float(scaling.log_odds(np.array([[9.0]])).item()), 1)
    0.7
    """
    rows = np.asarray(log_odds, dtype=np.float64)[:, np.newaxis]
    model = fit_logistic(rows, outcome, standardise=False)
    return model if model.coefficients[0] >= 0.0 else fit_logistic(np.zeros_like(rows), outcome)
