"""How far agents' stated confidences are from the probabilities that their models gave the answers."""

import math
from collections.abc import Sequence


def confidence_misalignment(stated: Sequence[float | None], intrinsic: Sequence[float | None]) -> float:
    """Mean absolute difference between stated and intrinsic confidence.

    `M = mean of |c_i - p_i|` over the agents for whom both numbers are known.

    Args:
        stated: `(n,)`, the confidence c_i that each agent stated, in [0, 1]; None or NaN if it
            stated none.
        intrinsic: `(n,)`, the probability p_i of each agent's answer under its own model, in
            [0, 1]; None or NaN if unknown.

    Returns:
        A difference of probabilities in [0, 1]; NaN when no agent has both numbers (also for n = 0).

    Raises:
        ValueError: if the lengths differ, or a known number is outside [0, 1].

    Source: SELENE, eq. 3.

    >>> round(confidence_misalignment([0.9, 0.8, 0.7], [0.8, None, 0.9]), 3)
    0.15
    """
    if len(stated) != len(intrinsic):
        raise ValueError(f"{len(stated)} stated confidences but {len(intrinsic)} intrinsic ones")
    gaps = [
        abs(c - p)
        for c, p in zip(map(_probability, stated), map(_probability, intrinsic), strict=True)
        if not (math.isnan(c) or math.isnan(p))
    ]
    return math.fsum(gaps) / len(gaps) if gaps else math.nan


def sigmoid_of_log_probability(p: float) -> float:
    """The paper's printed intrinsic confidence: the logistic function of log p.

    `sigma(log p) = 1 / (1 + exp(-log p)) = p / (1 + p)`. It is in [0, 0.5] whatever p is, so even an
    answer of probability 1 gets only 0.5; kept to reproduce the printed formula, see
    `moot.metrics.answer_probability` for the reading that works.

    Args:
        p: a probability in [0, 1] (not its logarithm).

    Returns:
        A number in [0, 0.5], rising with p; 0 for p = 0; NaN for NaN.

    Raises:
        ValueError: if p is outside [0, 1].

    Source: SELENE, sigma(l) with l the log-likelihood of the answer's tokens.

    >>> sigmoid_of_log_probability(1.0)
    0.5
    """
    p = _probability(p)
    return p / (1.0 + p)


def _probability(value: float | None) -> float:
    """The value itself, NaN for None; refuses what is outside [0, 1]."""
    if value is None or math.isnan(value):
        return math.nan
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{value!r} is not in [0, 1]")
    return float(value)
