"""Selective prediction: the risk of the answers that are kept when the least confident ones are left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Risk-coverage curve.

    Attributes:
        coverage: `(k,)`, rising, in (0, 1]: the share of the cases kept at each threshold of the confidence.
        risk: `(k,)`, in [0, 1]: the share of wrong answers among the cases kept.
        threshold: `(k,)`, falling: the least confidence kept.
        area: area under the curve (AURC), the mean risk over all cases' ranks; NaN without a case.
    """

    coverage: Floats
    risk: Floats
    threshold: Floats
    area: float


def risk_coverage(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> RiskCoverage:
    """Risk-coverage curve of a confidence. Cases of one confidence are kept or left out together.

    Args:
        confidence: `(n,)`, any number that rises with confidence; NaN when unknown.
        correct: `(n,)`, 1 or 0; NaN when unknown. Cases with something unknown are left out.

    Raises:
        ValueError: the shapes differ, or are no vectors.

    Source: Geifman and El-Yaniv, "Selective classification for deep neural networks", NeurIPS 2017.

    >>> curve = risk_coverage([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
    >>> curve.coverage.tolist(), [round(risk, 2) for risk in curve.risk.tolist()]
    ([0.25, 0.75, 1.0], [0.0, 0.33, 0.5])
    """
    scores, outcomes = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if scores.ndim != 1 or scores.shape != outcomes.shape:
        raise ValueError(f"two vectors of one length expected, not {scores.shape} and {outcomes.shape}")
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
