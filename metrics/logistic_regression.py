"""Logistic regression, held in check by a ridge."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.distribution import Floats

RIDGE = 1.0
"""Penalty `RIDGE / 2` times the sum of squared coefficients of standardised predictors; scikit-learn's `C` is its
inverse. As one more observation: separable classes have finite coefficients, hundreds of rows are hardly moved."""

_STEPS = 100
_SMALL = 1e-10  # a step in every coefficient


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """A fitted model.

    Attributes:
        intercept: log-odds where every predictor has its training mean (0, when they were not standardised).
        coefficients: `(k,)`, change in log-odds for one training standard deviation (for 1, when they were not
            standardised); 0 for what did not vary.
        means, deviations: `(k,)`, of the training rows; 0 and 1 when they were not standardised.
    """

    intercept: float
    coefficients: Floats
    means: Floats
    deviations: Floats

    def log_odds(self, predictors: Floats) -> Floats:
        """The log-odds of 1 for rows `(n, k)`."""
        standard = (predictors - self.means) / self.deviations
        return np.asarray(self.intercept + standard @ self.coefficients, dtype=np.float64)

    def probability(self, predictors: Floats) -> Floats:
        """The probability of 1 for rows `(n, k)`."""
        return np.asarray(scipy.special.expit(self.log_odds(predictors)), dtype=np.float64)


def fit_logistic(
    predictors: npt.ArrayLike,
    outcome: npt.ArrayLike,
    *,
    ridge: float = RIDGE,
    standardise: bool = True,
    start: LogisticModel | None = None,
) -> LogisticModel:
    """The maximum of the penalised likelihood, by iteratively reweighted least squares.

    Args:
        predictors: `(n, k)`, finite; k = 0 fits the share of ones.
        outcome: `(n,)`, of 0 and 1.
        ridge: the penalty, above 0; see `RIDGE`.
        standardise: whether each predictor counts in its standard deviations. Not for the coordinates of a unit
            vector, which are of one scale already: it would make much of those that hardly vary.
        start: a fit of the same rows under another penalty, to begin with; it changes the time only.

    Raises:
        ValueError: unless both outcomes occur and the penalty is above 0.

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
    means, deviations, scaled = _standardised(rows) if standardise else _as_they_are(rows)
    design = np.column_stack([np.ones(len(rows)), scaled])
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 0.0
    weights = np.zeros(design.shape[1])
    weights[0] = np.log(ones.mean() / (1.0 - ones.mean()))
    if start is not None:
        weights = np.concatenate([[start.intercept], start.coefficients])
    for _ in range(_STEPS):
        step = _newton_step(design, ones, weights, penalty)
        weights = weights + step
        if np.abs(step).max() < _SMALL:
            break
    return LogisticModel(float(weights[0]), weights[1:], means, deviations)


def _standardised(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Means, standard deviations and the rows in them; what does not vary is 0."""
    means, spread = rows.mean(axis=0), rows.std(axis=0)
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(means))
    deviations = np.where(varies, spread, 1.0)
    return means, deviations, np.where(varies, (rows - means) / deviations, 0.0)


def _as_they_are(rows: Floats) -> tuple[Floats, Floats, Floats]:
    return np.zeros(rows.shape[1]), np.ones(rows.shape[1]), rows


def _newton_step(design: Floats, ones: Floats, weights: Floats, penalty: Floats) -> Floats:
    """Newton's step, halved until the penalised likelihood does not fall."""
    p = scipy.special.expit(design @ weights)
    slope = design.T @ (ones - p) - penalty * weights
    curve = (design * (p * (1.0 - p))[:, np.newaxis]).T @ design + np.diag(penalty)
    curve[0, 0] += 1e-12
    step = np.linalg.solve(curve, slope)
    before = _likelihood(design, ones, weights, penalty)
    for _ in range(30):
        if _likelihood(design, ones, weights + step, penalty) >= before - 1e-12 * abs(before):
            break
        step = step / 2
    return np.asarray(step, dtype=np.float64)


def _likelihood(design: Floats, ones: Floats, weights: Floats, penalty: Floats) -> float:
    """Penalised log-likelihood."""
    odds = design @ weights
    return float((ones * odds - np.logaddexp(0.0, odds)).sum() - (penalty * weights**2).sum() / 2)
