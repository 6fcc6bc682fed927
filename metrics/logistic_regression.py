"""Logistic regression, held in check by a ridge."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import Numbers, as_codes

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


def grouped_folds(groups: npt.ArrayLike, folds: int, seed: int = 0) -> Numbers:
    """The fold of each row: the groups in random order, dealt out one after another.

    Args:
        groups: `(n,)`, of any sortable type.
        folds: how many, at least 2.
        seed: of the order.

    Returns:
        `(n,)`, 0 to `folds - 1`; the numbers of groups in two folds differ by one at most.

    Raises:
        ValueError: for fewer than 2 folds, or fewer groups than folds.

    >>> folds = grouped_folds(["a", "a", "b", "c", "d"], 2)
    >>> int(folds[0] - folds[1]), np.bincount(folds[1:]).tolist()
    (0, [2, 2])
    """
    codes = as_codes(groups, np.size(np.asarray(groups)))
    number = int(codes.max()) + 1 if len(codes) else 0
    if folds < 2:
        raise ValueError(f"at least two folds, not {folds}")
    if number < folds:
        raise ValueError(f"{number} groups cannot be dealt to {folds} folds")
    fold_of_group = np.empty(number, dtype=np.intp)
    fold_of_group[np.random.default_rng(seed).permutation(number)] = np.arange(number) % folds
    return fold_of_group[codes]


def balanced_folds(groups: npt.ArrayLike, outcome: npt.ArrayLike, folds: int, seed: int = 0) -> Numbers:
    """The fold of each row, such that every fold has about the same share of ones.

    The groups, in random order and then by their share of ones, are dealt out one after another. So a training part
    lacks an outcome only if fewer than two groups have it, and its share of ones hardly tells which fold was left out.

    Args:
        groups: `(n,)`, of any sortable type.
        outcome: `(n,)`, of 0 and 1.
        folds, seed: as for `grouped_folds`.

    Returns:
        `(n,)`, 0 to `folds - 1`; the numbers of groups in two folds differ by one at most.

    Raises:
        ValueError: for shapes that do not fit, fewer than 2 folds, or fewer groups than folds.

    >>> balanced_folds(["a", "a", "b", "c", "d"], [1, 1, 1, 0, 0], 2)[[0, 2]].tolist() in ([0, 1], [1, 0])
    True
    """
    ones = np.asarray(outcome, dtype=np.float64)
    codes = as_codes(groups, len(ones))
    number = int(codes.max()) + 1 if len(codes) else 0
    if folds < 2:
        raise ValueError(f"at least two folds, not {folds}")
    if number < folds:
        raise ValueError(f"{number} groups cannot be dealt to {folds} folds")
    share = np.bincount(codes, ones) / np.bincount(codes)
    drawn = np.random.default_rng(seed).permutation(number)
    fold_of_group = np.empty(number, dtype=np.intp)
    fold_of_group[drawn[np.argsort(share[drawn], kind="stable")]] = np.arange(number) % folds
    return fold_of_group[codes]


def least_probability(n: int) -> float:
    """`1 / (n + 2)`: what is still expected of an outcome that none of `n` observations had.

    Args:
        n: observations that are independent of each other, 0 or more.

    Raises:
        ValueError: for a negative number.

    Source: Laplace's rule of succession (Essai philosophique sur les probabilites, 1814).

    >>> least_probability(8)
    0.1
    """
    if n < 0:
        raise ValueError(f"there cannot be {n} observations")
    return 1.0 / (n + 2)


def bounded(p: npt.ArrayLike, least: float) -> Floats:
    """Probabilities of one of two outcomes, neither of them below `least`.

    >>> bounded([0.0, 0.5, 0.99], 0.1).tolist()
    [0.1, 0.5, 0.9]
    """
    return np.clip(np.asarray(p, dtype=np.float64), least, 1.0 - least)


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


@dataclass(frozen=True, slots=True)
class Scaling:
    """`intercept + slope * log-odds`; the slope is never below 0, so that no answer is turned round."""

    intercept: float
    slope: float

    def apply(self, log_odds: npt.ArrayLike) -> Floats:
        """The scaled log-odds, of the same shape."""
        return np.asarray(self.intercept + self.slope * np.asarray(log_odds, dtype=np.float64))


def fit_scaling(log_odds: npt.ArrayLike, outcome: npt.ArrayLike) -> Scaling:
    """The scaling under which the outcomes are likeliest, the slope held in check by a light ridge.

    Args:
        log_odds: `(n,)`, by models that have not seen their row; of models fitted to it, it would learn nothing.
        outcome: `(n,)`, of 0 and 1.

    Raises:
        ValueError: unless both outcomes occur.

    Source: Platt, "Probabilistic outputs for support vector machines", 1999.

    >>> scaling = fit_scaling([-9.0, -9.0, -9.0, 9.0, 9.0, 9.0] * 50, [0, 0, 1, 0, 1, 1] * 50)
    >>> round(float(scaling.apply(9.0)), 1)
    0.7
    """
    rows = np.asarray(log_odds, dtype=np.float64)[:, np.newaxis]
    model = fit_logistic(rows, outcome, standardise=False)
    if model.coefficients[0] < 0.0:
        return Scaling(fit_logistic(rows[:, :0], outcome).intercept, 0.0)
    return Scaling(model.intercept, float(model.coefficients[0]))
