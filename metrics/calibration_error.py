"""Expected calibration error (ECE), and the ECE of a perfectly calibrated forecaster.

Functions raise ValueError for shapes that do not fit, a confidence or level outside its range, an outcome that is
neither true, false nor unknown, and fewer than one bin or replicate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats

_DRAWS = 2**22  # outcomes in memory at once
_MANY, _MANY_IN_A_BIN = 20_000, 500  # of more cases, bins with more are drawn as a whole
_LEAST_VARIANCE = 25.0  # of a sum of outcomes for its normal approximation: nearly certain answers are skewed


@dataclass(frozen=True, slots=True)
class NullBand:
    """Null distribution of the calibration error, under perfect calibration; all NaN without observations.

    Attributes:
        mean: over the replicates; above 0, because the cases of a bin are finitely many.
        low, high: the ends of the central band.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """A bin of a reliability diagram.

    Attributes:
        n: cases in it.
        confidence: mean of their confidences.
        accuracy: share of them that came true.
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
        confidence: `(n,)`, the probability given to the answer, in [0, 1]; NaN (or None) when unknown.
        correct: `(n,)`, whether the answer was right: True or False (1 or 0); NaN (or None) when unknown.
        bins: at most how many, of equal frequency: a case's bin is its average rank's; equal confidences are never
            split, so bins may be of unequal size or empty.

    Returns:
        A difference of probabilities in [0, 1]. Cases with something unknown are left out; NaN when none is left. It is
        biased upwards, the more so the fewer cases a bin has: compare it with `calibration_null_band`.

    Source: Naeini, Cooper and Hauskrecht, AAAI 2015; Nguyen and O'Connor, EMNLP 2015, for equal-frequency bins.

    >>> expected_calibration_error([0.75, 0.75, 0.5, 0.5], [True, True, True, False], bins=2)
    0.125
    """
    confidences, outcomes = _both_known(confidence, correct)
    order, starts = _bins(confidences, bins)
    if not len(order):
        return float("nan")
    return float(_errors(confidences[order], outcomes[order], starts))


def resampled_calibration_error(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    resamples: int = 1000,
    bins: int = 15,
    seed: int = 0,
) -> Floats:
    """Cluster bootstrap of the calibration error: the error of each resample, which has bins of its own.

    The draws are those of `metrics.bootstrap.cluster_bootstrap`. A resample is how often each case was drawn, so that
    nothing is sorted more than once.

    Args:
        confidence, correct: `(n,)`, as for `expected_calibration_error`, all known.
        clusters: `(n,)`, the cluster of each case, of any sortable type.
        resamples: how many draws.
        bins: at most how many.
        seed: of the draws.

    Returns:
        `(resamples,)`.

    >>> resampled_calibration_error([0.75, 0.75, 0.5], [1, 1, 0], ["a", "a", "b"], resamples=4).round(3).tolist()
    [0.5, 0.333, 0.25, 0.25]
    """
    confidences, outcomes = _both_known(confidence, correct)
    names, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    if len(cluster) != len(confidences) or not len(cluster):
        raise ValueError("a cluster for each case expected, and at least one case")
    _, value = np.unique(confidences, return_inverse=True)
    excess = outcomes - confidences
    random = np.random.default_rng(seed)
    errors = np.empty(resamples)
    for place in range(resamples):
        drawn = np.bincount(random.integers(len(names), size=len(names)), minlength=len(names))[cluster]
        counts = np.bincount(value, drawn).astype(np.int64)
        gaps = np.bincount(_numbers(counts, bins), np.bincount(value, drawn * excess))
        errors[place] = np.abs(gaps).sum() / counts.sum()
    return errors


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
) -> list[NullBand]:
    """Null bands of a reliability diagram: for each bin of `reliability_bins`, the accuracy of a calibrated forecaster.

    Args:
        confidence: `(n,)`, in [0, 1]; unknown ones must be left out with their outcomes, as the bins are theirs.
        bins: as for the diagram.
        replicates: how many draws, at least 1.
        level: share of the replicates inside each band, in (0, 1).
        seed: of the draws.

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
        low, high = np.quantile(shares, [(1.0 - level) / 2, (1.0 + level) / 2])
        bands.append(NullBand(float(shares.mean()), float(low), float(high)))
    return bands


def calibration_null_band(
    confidence: npt.ArrayLike | Sequence[float | None],
    *,
    bins: int = 15,
    replicates: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> NullBand:
    """Null band of the calibration error: what a perfectly calibrated forecaster with these confidences would measure.

    Each replicate draws every answer right with exactly the probability stated, and bins it as
    `expected_calibration_error` does. A measured error below `high` is no evidence of miscalibration.

    Args:
        confidence: `(n,)`, in [0, 1]; NaN (or None) is left out.
        bins: as for the error it is compared with.
        replicates: how many draws, at least 1.
        level: share of the replicates inside the band, in (0, 1).
        seed: of the draws.

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
    return NullBand(float(errors.mean()), float(low), float(high))


def _replicated(
    stated: Floats, statistic: Callable[[Floats], Floats], replicates: int, random: np.random.Generator
) -> Floats:
    """`(replicates,)`, a statistic of outcomes that are drawn with exactly the probabilities stated."""
    parts: list[Floats] = []
    while (left := replicates - sum(map(len, parts))) > 0:
        rows = min(left, max(1, _DRAWS // len(stated)))
        parts.append(statistic((random.random((rows, len(stated))) < stated).astype(np.float64)))
    return np.concatenate(parts)


def _excess(stated: Floats, replicates: int, random: np.random.Generator) -> Floats:
    """`(replicates,)`, how many more of a bin's answers are right than stated.

    Of many answers that are not nearly certain the sum is practically normal, and drawn as such.
    """
    variance = float((stated * (1.0 - stated)).sum())
    if len(stated) > _MANY_IN_A_BIN and variance > _LEAST_VARIANCE:
        return random.normal(0.0, np.sqrt(variance), replicates)
    return _replicated(stated, lambda drawn: (drawn - stated).sum(axis=1), replicates, random)


def _check_draws(level: float, replicates: int) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level lies between 0 and 1, not {level:g}")
    if replicates < 1:
        raise ValueError(f"at least one replicate, not {replicates}")


def _both_known(
    confidence: npt.ArrayLike | Sequence[float | None], correct: npt.ArrayLike | Sequence[bool | None]
) -> tuple[Floats, Floats]:
    """The confidences and outcomes of the cases where both are known, checked."""
    confidences = np.asarray(confidence, dtype=np.float64)
    outcomes = np.asarray(correct, dtype=np.float64)
    if confidences.ndim != 1 or confidences.shape != outcomes.shape:
        raise ValueError(f"two vectors of one length expected, not {confidences.shape} and {outcomes.shape}")
    if not np.isin(outcomes[~np.isnan(outcomes)], (0.0, 1.0)).all():
        raise ValueError("an outcome is true, false or unknown")
    known = ~np.isnan(outcomes)
    return _known(confidences[known]), outcomes[known & ~np.isnan(confidences)]


def _known(confidences: Floats) -> Floats:
    """The confidences that are not NaN, checked."""
    known = confidences[~np.isnan(confidences)]
    if ((known < 0.0) | (known > 1.0)).any():
        raise ValueError("a confidence is outside [0, 1]")
    return known


def _bins(confidences: Floats, bins: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The order in which the cases of a bin are neighbours, and where each bin that has any starts.

    Within a bin the confidences rise, so that what is drawn for them does not depend on the order of the input.
    """
    if bins < 1:
        raise ValueError(f"at least one bin, not {bins}")
    _, value, counts = np.unique(confidences, return_inverse=True, return_counts=True)
    number = _numbers(counts, bins)[value]
    order = np.lexsort((confidences, number))
    return order, np.flatnonzero(np.diff(number[order], prepend=-1))


def _numbers(counts: npt.NDArray[np.int64], bins: int) -> npt.NDArray[np.intp]:
    """The bin of each distinct confidence, which so many cases have: that of its average rank."""
    rank = np.cumsum(counts) - counts / 2.0
    result: npt.NDArray[np.intp] = np.minimum(np.floor(rank * bins / max(counts.sum(), 1)).astype(np.intp), bins - 1)
    return result


def _errors(confidences: Floats, outcomes: Floats, starts: npt.NDArray[np.intp]) -> Floats:
    """The error of each row of outcomes `(..., n)`; the cases of a bin are neighbours."""
    gaps: Floats = np.abs(np.add.reduceat(outcomes - confidences, starts, axis=-1)).sum(axis=-1) / len(confidences)
    return gaps
