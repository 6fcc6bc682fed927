"""Nested model comparison: whether additional predictors improve out-of-sample prediction of an outcome.

It answers, for example, "does the slope improve on the mean?".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.class_separation import within_groups_auroc
from moot.metrics.distribution import Floats
from moot.metrics.jackknife import left_out_sums, mean_interval
from moot.metrics.logistic_regression import fit_logistic, grouped_folds
from moot.metrics.pairwise_complete import Numbers, as_columns

_LEAST_PROBABILITY = 1e-15  # as in scikit-learn, so that the log-loss is finite


@dataclass(frozen=True, slots=True)
class ModelScore:
    """Out-of-fold scores of the model with all blocks up to this one; NaN if a training set has only one class.

    Attributes:
        name: name of the block that this model adds.
        n: number of rows, the same for every model.
        predictors: number of columns of the model.
        log_loss: mean of `-log p(outcome)`, nats; lower is better.
        auroc: in [0, 1], over pairs of rows in the same fold. Across folds it would compare base rates, and be below
            0.5 for a model without information.
        brier: mean of `(p - outcome)^2`.
        gain: mean log-loss of the previous model minus that of this one, positive if the block helps. NaN for the
            first.
        gain_low, gain_high: 95 % interval of the gain over groups, with the fitted models fixed; NaN for fewer than
            ten groups.
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

    All models use the same rows: those with finite predictors in EVERY block and a known outcome. Predictors are
    standardised on the training set.

    Args:
        blocks: by name, in order, `(n, k)` each (a vector is one column). A first block `(n, 0)` gives the score of the
            base rate.
        y: `(n,)`, 0, 1 or NaN.
        groups: `(n,)`, group of each row, of any sortable type; each group is in one fold.
        folds, seed: see `moot.metrics.logistic_regression.grouped_folds`.

    Raises:
        ValueError: for no blocks, incompatible shapes, an outcome that is not 0, 1 or NaN, or fewer groups than folds.

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
        raise ValueError(f"every block and the groups must have one row for each of {outcome.shape} outcomes")
    if not np.isin(outcome[~np.isnan(outcome)], (0.0, 1.0)).all():
        raise ValueError("an outcome must be 0, 1 or unknown")
    known = np.isfinite(np.column_stack([outcome, *columns.values()])).all(axis=1)
    outcome, group = outcome[known], group[known]
    fold = grouped_folds(group, folds, seed)
    scores: list[ModelScore] = []
    predictors = np.empty((len(outcome), 0))
    before = np.full(len(outcome), np.nan)
    for name, block in columns.items():
        predictors = np.column_stack([predictors, block[known]])
        p = _out_of_fold(predictors, outcome, fold)
        losses = _losses(p, outcome)
        gain, low, high = _gain(before - losses, group)
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
    """Probability of each row from the model fitted without its fold; all NaN if a model cannot be fitted."""
    p = np.full(len(outcome), np.nan)
    for number in np.unique(fold):
        out = fold == number
        if not 0.0 < outcome[~out].mean() < 1.0:
            return np.full(len(outcome), np.nan)
        p[out] = fit_logistic(predictors[~out], outcome[~out]).probability(predictors[out])
    return p


def _losses(p: Floats, outcome: Floats) -> Floats:
    """Log-loss of each row, nats."""
    inside = np.clip(p, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY)
    return np.asarray(
        -(scipy.special.xlogy(outcome, inside) + scipy.special.xlogy(1.0 - outcome, 1.0 - inside)), dtype=np.float64
    )


def _gain(differences: Floats, group: npt.NDArray[Any]) -> tuple[float, float, float]:
    """Mean difference, and the ends of its interval over groups."""
    sums = left_out_sums(np.column_stack([differences, np.ones(len(differences))]), group)
    gain = float(differences.mean())
    return gain, *mean_interval(sums[:, 0] / sums[:, 1], gain)
