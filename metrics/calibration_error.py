"""Expected calibration error (ECE), and the ECE of a perfectly calibrated forecaster.

Functions raise ValueError for incompatible shapes, a confidence or level out of range, an outcome that is not true,
false or unknown, and fewer than one bin or replicate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats
from moot.metrics.pairwise_complete import as_codes

_DRAWS = 2**22  # outcomes in memory
_MANY, _MANY_IN_A_BIN = 20_000, 500  # with more cases, the sum of a bin with more cases is drawn directly
_LEAST_VARIANCE = 25.0  # of a sum of outcomes, for its normal approximation: sums of nearly certain outcomes are skewed


@dataclass(frozen=True, slots=True)
class NullBand:
    """Null distribution of the calibration error, under perfect calibration; all NaN without observations.

    Attributes:
        mean: mean over the replicates; above 0, because bins are finite.
        low, high: ends of the central band.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Bin of a reliability diagram.

    Attributes:
        n: number of cases.
        confidence: mean confidence.
        accuracy: proportion of correct answers.
    """

    n: int
    confidence: float
    accuracy: float


def expected_calibration_error(
    confidence: npt.ArrayLike | Sequence[float | None],
    correct: npt.ArrayLike | Sequence[bool | None],
    *,
    bins: int = 15,
) -> float:
    """Expected calibration error (ECE), `sum n_b / n |accuracy_b - confidence_b|` over equal-frequency bins.

    Args:
        confidence: `(n,)`, probability given to the answer, in [0, 1]; NaN (or None) if unknown.
        correct: `(n,)`, whether the answer was right: True or False (1 or 0); NaN (or None) if unknown.
        bins: maximum number of equal-frequency bins. Cases are assigned by average rank, so that equal confidences
            share a bin; bins may be of unequal size, or empty.

    Returns:
        In [0, 1]. Cases with an unknown value are left out; NaN if none remains. The estimate is biased upwards, more
        so with fewer cases per bin, and so are its resamples: compare it with `calibration_null_band`.

    Source: Naeini, Cooper and Hauskrecht, AAAI 2015; Nguyen and O'Connor, EMNLP 2015, for equal-frequency bins.

    >>> expected_calibration_error([0.75, 0.75, 0.5, 0.5], [True, True, True, False], bins=2)
    0.125
    """
    confidences, outcomes = _both_known(confidence, correct)
    order, starts = _bins(confidences, bins)
    if not len(order):
        return float("nan")
    return float(_errors(confidences[order], outcomes[order], starts))


def reliability_bins(
    confidence: npt.ArrayLike | Sequence[float | None],
    correct: npt.ArrayLike | Sequence[bool | None],
    *,
    bins: int = 15,
) -> list[ReliabilityBin]:
    """Non-empty bins of `expected_calibration_error`, by increasing confidence: the points of a reliability diagram.

    >>> [(each.n, each.confidence, each.accuracy) for each in reliability_bins([0.25, 0.25, 1.0], [0, 1, 1], bins=2)]
    [(2, 0.25, 0.5), (1, 1.0, 1.0)]
    """
    confidences, outcomes = _both_known(confidence, correct)
    order, starts = _bins(confidences, bins)
    return [
        ReliabilityBin(len(some), float(confidences[some].mean()), float(outcomes[some].mean()))
        for some in np.split(order, starts[1:])
        if len(some)
    ]


def reliability_null_bands(
    confidence: npt.ArrayLike | Sequence[float | None],
    *,
    bins: int = 15,
    replicates: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    inflation: float = 1.0,
) -> list[NullBand]:
    """Null bands of a reliability diagram: for each bin of `reliability_bins`, the accuracy of a calibrated forecaster.

    Args:
        confidence: `(n,)`, in [0, 1]; leave out cases of unknown outcome, so that the bins are those of the diagram.
        bins: as for the diagram.
        replicates: number of replicates, at least 1; drawn as for `calibration_null_band`.
        level: proportion of the replicates inside each band, in (0, 1).
        seed: seed of the random generator.
        inflation: widens the bands of dependent cases, see `dependence_inflation`; they stay within [0, 1].

    Source: Brocker and Smith, "Increasing the reliability of reliability diagrams", 2007 (consistency bars).

    >>> [band] = reliability_null_bands([0.5] * 100, bins=1)
    >>> 0.38 < band.low < 0.42, 0.58 < band.high < 0.62
    (True, True)
    """
    _check_draws(level, replicates)
    confidences = _known(np.asarray(confidence, dtype=np.float64))
    order, starts = _bins(confidences, bins)
    random = np.random.default_rng(seed)
    bands = []
    for some in np.split(order, starts[1:]):
        if not len(some):
            continue
        stated = confidences[some]
        if len(order) > _MANY:
            shares = stated.mean() + _excess(stated, replicates, random) / len(stated)
        else:
            shares = _replicated(stated, lambda drawn: drawn.mean(axis=1), replicates, random)
        mean = shares.mean()
        ends = np.quantile(shares, [(1.0 - level) / 2, (1.0 + level) / 2])
        low, high = np.clip(mean + inflation * (ends - mean), 0.0, 1.0)
        bands.append(NullBand(float(mean), float(low), float(high)))
    return bands


def calibration_null_band(
    confidence: npt.ArrayLike | Sequence[float | None],
    *,
    bins: int = 15,
    replicates: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    inflation: float = 1.0,
) -> NullBand:
    """Null band of the calibration error: the error of a perfectly calibrated forecaster with these confidences.

    In each replicate every answer is right with exactly its stated probability, and is binned as in
    `expected_calibration_error`. With more than 20,000 cases, the number of right answers in a bin of more than 500,
    and of a variance `sum c (1 - c)` above 25, is drawn from a normal approximation. A measured error below `high` is
    no evidence of miscalibration.

    Args:
        confidence: `(n,)`, in [0, 1]; NaN (or None) is left out.
        bins: as for the error to compare with.
        replicates: number of replicates, at least 1.
        level: proportion of the replicates inside the band, in (0, 1).
        seed: seed of the random generator.
        inflation: factor of the upper end for dependent cases, see `dependence_inflation`.

    Source: Brocker and Smith, "Increasing the reliability of reliability diagrams", 2007 (consistency resampling).

    >>> band = calibration_null_band([0.5] * 100, bins=1)
    >>> 0.035 < band.mean < 0.045, band.low < 0.01, 0.08 < band.high < 0.12
    (True, True, True)
    """
    _check_draws(level, replicates)
    confidences = np.asarray(confidence, dtype=np.float64)
    if confidences.ndim != 1:
        raise ValueError(f"a vector of confidences expected, not {confidences.shape}")
    confidences = _known(confidences)
    order, starts = _bins(confidences, bins)
    n = len(order)
    if not n:
        return NullBand(float("nan"), float("nan"), float("nan"))
    stated = confidences[order]
    random = np.random.default_rng(seed)
    if n > _MANY:
        excesses = [_excess(part, replicates, random) for part in np.split(stated, starts[1:])]
        errors = np.abs(excesses).sum(axis=0) / n
    else:
        errors = _replicated(stated, lambda drawn: _errors(stated, drawn, starts), replicates, random)
    low, high = np.quantile(errors, [(1.0 - level) / 2, (1.0 + level) / 2])
    return NullBand(float(errors.mean()), float(low), min(1.0, inflation * float(high)))


def dependence_inflation(confidence: npt.ArrayLike, correct: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """Factor by which the sums of dependent outcomes vary more than those of independent ones, at least 1.

    The square root of `sum over the clusters of (sum e)^2 / sum e^2`, with e the outcome minus the confidence. Bands
    that are widened by it are conservative: a cluster's cases are seldom all in one bin.

    Args:
        confidence, correct: `(n,)`, as for `expected_calibration_error`, all known.
        clusters: `(n,)`, cluster of each case, of any sortable type; cases of different clusters are independent.

    >>> round(dependence_inflation([0.5] * 4, [1, 1, 0, 0], ["a", "a", "b", "b"]), 3)
    1.414
    """
    confidences, outcomes = _both_known(confidence, correct)
    codes = as_codes(clusters, len(confidences))
    excess = outcomes - confidences
    total = float((excess**2).sum())
    return max(1.0, float(np.sqrt((np.bincount(codes, excess) ** 2).sum() / total))) if total else 1.0


def _replicated(
    stated: Floats, statistic: Callable[[Floats], Floats], replicates: int, random: np.random.Generator
) -> Floats:
    """Statistic of replicates, `(replicates,)`, whose outcomes are drawn with exactly the stated probabilities."""
    parts: list[Floats] = []
    while (left := replicates - sum(map(len, parts))) > 0:
        rows = min(left, max(1, _DRAWS // len(stated)))
        parts.append(statistic((random.random((rows, len(stated))) < stated).astype(np.float64)))
    return np.concatenate(parts)


def _excess(stated: Floats, replicates: int, random: np.random.Generator) -> Floats:
    """Number of right answers in a bin minus the number expected, `(replicates,)`.

    It is drawn from the normal approximation for many answers that are not nearly certain, else exactly: the less
    likely outcomes are the cases that a Poisson process hits at least once, so only these few are drawn.
    """
    variance = float((stated * (1.0 - stated)).sum())
    if len(stated) > _MANY_IN_A_BIN and variance > _LEAST_VARIANCE:
        return random.normal(0.0, np.sqrt(variance), replicates)
    is_likely = stated > 0.5
    n, rates = len(stated), -np.log1p(-np.minimum(stated, 1.0 - stated))  # of hits, so that P(no hit) = 1 - p
    ends = np.cumsum(rates)
    hits = random.poisson(ends[-1], replicates)
    hit = np.searchsorted(ends, random.random(hits.sum()) * ends[-1], side="right")
    replicate, case = np.divmod(np.unique(np.repeat(np.arange(replicates), hits) * n + np.minimum(hit, n - 1)), n)
    changes = np.bincount(replicate, np.where(is_likely, -1.0, 1.0)[case], replicates)
    found: Floats = np.count_nonzero(is_likely) + changes - stated.sum()
    return found


def _check_draws(level: float, replicates: int) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must be between 0 and 1, not {level:g}")
    if replicates < 1:
        raise ValueError(f"at least one replicate expected, not {replicates}")


def _both_known(
    confidence: npt.ArrayLike | Sequence[float | None], correct: npt.ArrayLike | Sequence[bool | None]
) -> tuple[Floats, Floats]:
    """Validated confidences and outcomes of the cases where both are known."""
    confidences = np.asarray(confidence, dtype=np.float64)
    outcomes = np.asarray(correct, dtype=np.float64)
    if confidences.ndim != 1 or confidences.shape != outcomes.shape:
        raise ValueError(f"two vectors of equal length expected, not {confidences.shape} and {outcomes.shape}")
    if not np.isin(outcomes[~np.isnan(outcomes)], (0.0, 1.0)).all():
        raise ValueError("an outcome must be true, false or unknown")
    known = ~np.isnan(outcomes)
    return _known(confidences[known]), outcomes[known & ~np.isnan(confidences)]


def _known(confidences: Floats) -> Floats:
    """Validated confidences that are not NaN."""
    known = confidences[~np.isnan(confidences)]
    if ((known < 0.0) | (known > 1.0)).any():
        raise ValueError("a confidence is outside [0, 1]")
    return known


def _bins(confidences: Floats, bins: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Order that sorts the cases by bin, and the start of each non-empty bin.

    Within a bin confidences increase, so that the draws do not depend on the order of the input.
    """
    if bins < 1:
        raise ValueError(f"at least one bin expected, not {bins}")
    _, value, counts = np.unique(confidences, return_inverse=True, return_counts=True)
    number = _bin_of_value(counts, bins)[value]
    order = np.lexsort((confidences, number))
    return order, np.flatnonzero(np.diff(number[order], prepend=-1))


def _bin_of_value(counts: npt.NDArray[np.int64], bins: int) -> npt.NDArray[np.intp]:
    """Bin of each distinct confidence, from its average rank.

    Args:
        counts: number of cases with each distinct confidence, ascending.
    """
    rank = np.cumsum(counts) - counts / 2.0
    result: npt.NDArray[np.intp] = np.minimum(np.floor(rank * bins / max(counts.sum(), 1)).astype(np.intp), bins - 1)
    return result


def _errors(confidences: Floats, outcomes: Floats, starts: npt.NDArray[np.intp]) -> Floats:
    """Calibration error of each row of outcomes `(..., n)`, which are sorted by bin."""
    gaps: Floats = np.abs(np.add.reduceat(outcomes - confidences, starts, axis=-1)).sum(axis=-1) / len(confidences)
    return gaps
