"""Log-odds brought to the size that held-out outcomes bear out (Platt scaling)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats
from moot.metrics.logistic_regression import fit_logistic


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
