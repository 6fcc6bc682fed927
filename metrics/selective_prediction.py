"""Selective prediction: the error rate that remains when the least confident answers are rejected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Risk-coverage curve.

    Attributes:
        coverage: `(k,)`, ascending, in (0, 1]: the proportion of cases kept at each confidence threshold.
        risk: `(k,)`, in [0, 1]: the proportion of wrong answers among the cases kept.
        threshold: `(k,)`, descending: the lowest confidence kept.
        area: area under the curve (AURC), in [0, 1]: the mean over cases of the risk at their threshold; NaN if
            there are none.
    """

    coverage: Floats
    risk: Floats
    threshold: Floats
    area: float


def risk_coverage(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> RiskCoverage:
    """Risk-coverage curve of a confidence score; cases with equal scores are kept or rejected together.

    Args:
        confidence: `(n,)`, any score that rises with confidence; NaN if unknown.
        correct: `(n,)`, 1 or 0; NaN if unknown. Cases with an unknown value are left out.

    Raises:
        ValueError: if the shapes differ, or are not one-dimensional.

    Source: Geifman and El-Yaniv, "Selective classification for deep neural networks", NeurIPS 2017.

    >>> curve = risk_coverage([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
    >>> curve.coverage.tolist(), [round(risk, 2) for risk in curve.risk.tolist()]
    ([0.25, 0.75, 1.0], [0.0, 0.33, 0.5])
    """
    scores, outcomes = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != outcomes.shape:
        raise ValueError(f"two vectors of equal length expected, not {scores.shape} and {outcomes.shape}")
    known = ~(np.isnan(scores) | np.isnan(outcomes))
    order = np.argsort(-scores[known], kind="stable")
    ordered, wrong = scores[known][order], 1.0 - outcomes[known][order]
    if not len(ordered):
        return RiskCoverage(np.empty(0), np.empty(0), np.empty(0), float("nan"))
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    kept = last + 1
    risk = np.cumsum(wrong)[last] / kept
    weights = np.diff(np.concatenate([[0], kept]))
    return RiskCoverage(kept / len(ordered), risk, ordered[last], float((risk * weights).sum() / len(ordered)))
