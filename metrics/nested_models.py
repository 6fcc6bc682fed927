"""Nested model comparison: whether more predictors improve out-of-sample prediction of an outcome.

Answers "does the slope add to the mean?" and "do the features predict correctness, without and with Q and T?".
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.class_separation import within_groups_auroc
from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.distribution import Floats
from moot.metrics.logistic_regression import fit_logistic, grouped_folds
from moot.metrics.pairwise_complete import Numbers, as_codes, as_columns

_RESAMPLES = 1000
_LEAST_PROBABILITY = 1e-15  # as scikit-learn, so that a log-loss is finite


@dataclass(frozen=True, slots=True)
class ModelScore:
    """Out-of-fold scores of the model with the blocks up to this one; NaN when a training part had one class.

    Attributes:
        name: of the block that this model adds.
        n: rows, the same for every model.
        predictors: how many columns the model has.
        log_loss: mean of `-log p(outcome)`, nats; less is better.
        auroc: in [0, 1], of pairs of one fold: across folds the models' base rates would count, which give less than
                one half where nothing is predicted.
        brier: mean of `(p - outcome)^2`.
        gain: mean log-loss of the previous model minus this one's: above 0 when the block helps. NaN for the first.
        gain_low, gain_high: its 95 % interval over resampled groups, with the fitted models fixed.
    """

    name: str
    n: int
    predictors: int
    log_loss: float
    auroc: float
    brier: float
    gain: float
    gain_low: float
    gain_high: float


def nested_comparison(
    blocks: Mapping[str, npt.ArrayLike], y: npt.ArrayLike, groups: npt.ArrayLike, folds: int = 5, seed: int = 0
) -> list[ModelScore]:
    """Cross-validated comparison of nested logistic regressions: on the first block, the first two, and so on.

    Rows with an unknown or infinite predictor of ANY block, or an unknown outcome, are left out of all models: scores
    on other rows could not be compared. Predictors are standardised on the training part.

    Args:
        blocks: by name, in order, `(n, k)` each (a vector is one column). A first block `(n, 0)` gives the score
            of the share of ones alone.
        y: `(n,)`, 0, 1 or NaN.
        groups: `(n,)`, of any sortable type; a group is in one fold.
        folds, seed: see `grouped_folds`; the seed is also that of the intervals.

    Raises:
        ValueError: for no block, shapes that do not fit, another outcome, or fewer groups than folds.

    Source: Stone, JRSS B 1974; Steyerberg et al., "Assessing the performance of prediction models", Epidemiology 2010.

    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> scores = nested_comparison({"noise": x[:, 0], "signal": x[:, 1]}, x[:, 1] > 0, np.arange(300))
    >>> [(score.name, score.n, score.predictors, score.gain_low > 0.1) for score in scores]
    [('noise', 300, 1, False), ('signal', 300, 2, True)]
    """
    if not blocks:
        raise ValueError("there is no block of predictors")
    columns = {name: as_columns(block) for name, block in blocks.items()}
    outcome, group = np.asarray(y, dtype=np.float64), np.asarray(groups)
    if outcome.ndim != 1 or any(len(block) != len(outcome) for block in (*columns.values(), group)):
        raise ValueError(f"every block and the groups need one row for each of {outcome.shape} outcomes")
    if not np.isin(outcome[~np.isnan(outcome)], (0.0, 1.0)).all():
        raise ValueError("an outcome is 0, 1 or unknown")
    known = np.isfinite(np.column_stack([outcome, *columns.values()])).all(axis=1)
    outcome, group = outcome[known], group[known]
    fold = grouped_folds(group, folds, seed)
    code = as_codes(group, len(group))
    drawn = cluster_weights(np.arange(code.max() + 1), _RESAMPLES, seed).astype(np.float64)
    scores: list[ModelScore] = []
    predictors = np.empty((len(outcome), 0))
    before = np.full(len(outcome), np.nan)
    for name, block in columns.items():
        predictors = np.column_stack([predictors, block[known]])
        p = _out_of_fold(predictors, outcome, fold)
        losses = _losses(p, outcome)
        gain, low, high = _gain(before - losses, code, drawn)
        scores.append(
            ModelScore(
                name=name,
                n=len(outcome),
                predictors=predictors.shape[1],
                log_loss=float(losses.mean()),
                auroc=within_groups_auroc(p, outcome, fold).item(),
                brier=float(((p - outcome) ** 2).mean()),
                gain=gain,
                gain_low=low,
                gain_high=high,
            )
        )
        before = losses
    return scores


def _out_of_fold(predictors: Floats, outcome: Floats, fold: Numbers) -> Floats:
    """Each row's probability by the model that has not seen its fold; all NaN if one of them cannot be fitted."""
    p = np.full(len(outcome), np.nan)
    for number in np.unique(fold):
        out = fold == number
        if not 0.0 < outcome[~out].mean() < 1.0:
            return np.full(len(outcome), np.nan)
        p[out] = fit_logistic(predictors[~out], outcome[~out]).probability(predictors[out])
    return p


def _losses(p: Floats, outcome: Floats) -> Floats:
    """Log-loss of each row, in nats."""
    inside = np.clip(p, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY)
    return np.asarray(
        -(scipy.special.xlogy(outcome, inside) + scipy.special.xlogy(1.0 - outcome, 1.0 - inside)), dtype=np.float64
    )


def _gain(differences: Floats, group: Numbers, drawn: Floats) -> tuple[float, float, float]:
    """The mean difference, and the quantiles of its resamples, `(resamples, groups)`."""
    means = (drawn @ np.bincount(group, differences)) / (drawn @ np.bincount(group))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(differences.mean()), float(low), float(high)
