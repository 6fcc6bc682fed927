"""The least probability that a number of observations can speak for."""

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats


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
