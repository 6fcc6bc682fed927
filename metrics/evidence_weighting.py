"""Evidence-weighted aggregation of judge scores over K evidence variants, and the stability of these scores.

Functions raise ValueError for invalid shapes, a score outside [0, 1], a `lam` outside [0, 2], an unknown weighting, and
`per-variant` with fewer than two repeats.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

Scores = npt.ArrayLike | Sequence[float | None] | Sequence[Sequence[float | None]]
"""Scores in [0, 1]: `(K,)`, or `(K, R)` with R repeats per variant; NaN or None is missing."""

Weighting = Literal["printed", "variance-penalised", "per-variant"]
"""Combination of the scores of the K evidence variants; see `evidence_weighted_score`."""

MAX_LAM = 2.0
"""Largest penalty for which the aggregate is non-decreasing in every score."""


def evidence_weighted_score(scores: Scores, weighting: Weighting, lam: float = 1.0) -> float:
    """Evidence-weighted score of a candidate, aggregated over K evidence variants.

    With m_k the mean of variant k's repeats (the score itself without repeats) and Var the population variance:

    - `"printed"`: the mean of m_k. The paper weights every s_k by exp(-Var over all k), which is the same number for
      each k, so that the weights cancel when they are normalised.
    - `"variance-penalised"`: `mean(m) * exp(-lam * Var(m))`.
    - `"per-variant"`: `sum of w_k m_k / sum of w_k`, `w_k = exp(-Var over the repeats of k)`. A variant with fewer
    than two known repeats has no known weight and is left out.

    Each is non-decreasing in every score. The derivative of the penalised score by m_k has the sign of `1 - 2 lam mean
    (m_k - mean)`; as m_k <= 1, `mean (m_k - mean) <= 1/4`, so `lam <= 2` suffices, and a larger one raises ValueError.
    That of the per-variant score by s_kr, the score of repeat r, has the sign of `1 - 2 (s_kr - m_k) (m_k - S)`, with S
    the result, which is at least 1/2.

    Args:
        scores: `(K,)`, or `(K, R)` with R repeats per variant, in [0, 1]; NaN (or None) is missing.
        weighting: one of the above.
        lam: strength of the penalty, in [0, 2]; only for `"variance-penalised"`.

    Returns:
        In [0, 1], over the scores that are not missing; NaN if none remains.

    Source: SELENE, evidence-weighted self-consistency (EWSC), S_i.

    >>> round(evidence_weighted_score([0.9, 0.4, 0.6], "printed"), 4)
    0.6333
    >>> round(evidence_weighted_score([0.9, 0.4, 0.6], "variance-penalised"), 4)
    0.6071
    """
    if weighting not in get_args(Weighting):
        raise ValueError(f"unknown weighting {weighting!r}: expected one of {', '.join(get_args(Weighting))}")
    if not 0.0 <= lam <= MAX_LAM:
        raise ValueError(
            f"lam must be in [0, {MAX_LAM:g}], not {lam!r}: above that, a higher score could lower the result"
        )
    rows = _score_rows(scores)
    if weighting == "per-variant":
        return _per_variant(rows)
    means = _variant_means(rows)
    if means.size == 0:
        return math.nan
    mean = float(means.mean())
    if weighting == "printed":
        return mean
    return mean * math.exp(-lam * float(means.var()))


def judge_stability(scores: Scores) -> float:
    """Judge stability: one minus the variance of a judge's scores of one candidate over evidence variants.

    The variance is the population variance of the means over repeats. For scores in [0, 1] it is at most 1/4, so the
    result is at least 3/4. For K = 3 it is at most 2/9 (two scores at one end, one at the other), and the result at
    least 7/9 = 0.778. Report it with `flip_rate`.

    Args:
        scores: `(K,)` or `(K, R)`, in [0, 1]; NaN (or None) is missing.

    Returns:
        In [0.75, 1]; NaN with fewer than two variants that are not missing.

    Source: SELENE, judge stability (averaged there over cases and candidates).

    >>> round(judge_stability([0.0, 0.0, 1.0]), 4)
    0.7778
    """
    means = _variant_means(_score_rows(scores))
    return 1.0 - float(means.var()) if means.size >= 2 else math.nan


def flip_rate(winners: Sequence[str | None]) -> float:
    """Flip rate: the proportion of evidence variants whose winner is not the most frequent one.

    Args:
        winners: `(K,)`, winning label of each variant; None is missing and left out.

    Returns:
        In [0, 1): 0 if all agree. Ties for the most frequent winner do not matter. NaN if every winner is missing.

    >>> flip_rate(["A", "A", "B", None, "A"])
    0.25
    """
    counts = Counter(winner for winner in winners if winner is not None)
    known = counts.total()
    return (known - max(counts.values())) / known if known else math.nan


def _score_rows(scores: Scores) -> npt.NDArray[np.float64]:
    """Validated scores `(K, R)`; NaN if missing."""
    rows = np.asarray(scores, dtype=np.float64)
    if rows.ndim not in (1, 2):
        raise ValueError(f"scores must have the shape (K,) or (K, R), not {rows.shape}")
    if ((rows < 0.0) | (rows > 1.0)).any():
        raise ValueError("a score is outside [0, 1]")
    return rows.reshape(-1, 1) if rows.ndim == 1 else rows


def _variant_means(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean over repeats of each variant that has at least one score."""
    known = ~np.isnan(rows)
    count = known.sum(axis=1)
    kept = count > 0
    total = np.where(known, rows, 0.0).sum(axis=1)
    means: npt.NDArray[np.float64] = total[kept] / count[kept]
    return means


def _per_variant(rows: npt.NDArray[np.float64]) -> float:
    """Mean of the variants weighted by exp(-variance over repeats)."""
    if rows.shape[1] < 2:
        raise ValueError("per-variant weighting requires scores of shape (K, R) with R > 1")
    kept = rows[(~np.isnan(rows)).sum(axis=1) >= 2]
    if kept.size == 0:
        return math.nan
    weights = np.exp(-np.nanvar(kept, axis=1))
    return float((weights * np.nanmean(kept, axis=1)).sum() / weights.sum())
