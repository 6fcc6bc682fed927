"""Many tests at once: p-values that say how many of the findings may be false."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats


def benjamini_hochberg(p_values: npt.ArrayLike | Sequence[float | None]) -> Floats:
    """Benjamini and Hochberg's adjusted p-values, `min over j with p_j >= p_i of m p_j / rank_j`, at most 1.

    To call all with an adjusted value of at most q a finding keeps the expected share of false ones at q, for tests
    that are independent or positively dependent.

    Args:
        p_values: `(m,)`, in [0, 1]; NaN (or None) is a test that gave none, and does not count among the m.

    Returns:
        `(m,)`, in the order given, each at least its p-value; NaN where that is NaN.

    Raises:
        ValueError: if they are no vector, or one is outside [0, 1].

    Source: Benjamini and Hochberg, JRSS B 1995.

    >>> benjamini_hochberg([0.01, None, 0.04, 0.02]).round(4).tolist()
    [0.03, nan, 0.04, 0.03]
    """
    found = np.array(p_values, dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"a vector of p-values expected, not {found.shape}")
    known = ~np.isnan(found)
    if ((found[known] < 0.0) | (found[known] > 1.0)).any():
        raise ValueError("a p-value is outside [0, 1]")
    if known.any():
        from scipy.stats import false_discovery_control

        found[known] = false_discovery_control(found[known], method="bh")
    return found
