"""Confidence trajectories of replies: by absolute position, in four phases, and on a grid from 0 to 100 %."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from moot.metrics.confidence_features import LEAST_LOGPROB
from moot.metrics.distribution import Floats
from moot.metrics.ragged import RaggedArray

Integers = npt.NDArray[np.int64]

LEAST_REPLIES: Final = 30
"""Minimum number of replies at a position; the curve ends before the first position with fewer."""

LEAST_SHARE: Final = 0.25
"""Minimum proportion of the replies at a position, because long replies are not representative."""

GRID: Final = 101
"""Number of points of the grid from 0 to 100 % of a reply."""

OPENING_END: Final = 5
"""Stop position of the opening (exclusive)."""

DECLINE_LIMIT: Final = 50
"""The decline ends at the smoothed minimum before this position."""

PLATEAU: Final = (100, 400)
"""Start and stop (exclusive) of the plateau."""

LATE_START: Final = 550
"""Start of the late phase, which has no stop."""

SMOOTHING: Final = 5
"""Width of the centred moving average for the minimum of the decline; narrower at the ends."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanProbability:
    """Mean token probability by absolute position.

    Attributes:
        mean: `(P,)`, in [0, 1]; position 0 is the first token of a reply.
        n: `(P,)`, number of replies with a known probability at the position.
        reached: number of positions of the longest reply, including those cut off.
    """

    mean: Floats
    n: Integers
    reached: int


@dataclass(frozen=True, slots=True)
class Phase:
    """Phase of the mean trajectory.

    Attributes:
        name: `opening`, `decline`, `plateau` or `late`.
        start: first position.
        stop: position after the last one averaged; equal to `start` if the phase is empty.
        mean: unweighted mean of the mean probabilities at its positions; NaN if it is empty.
        n: smallest number of replies at one of its positions; 0 if it is empty.
    """

    name: str
    start: int
    stop: int
    mean: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class TrajectoryBands:
    """Mean and quantiles of log-probabilities at each point of the grid; NaN where no reply is known.

    Attributes:
        mean: `(101,)`, nats.
        low_10: `(101,)`, 10 % quantile, with linear interpolation, as the other three.
        low_25: 25 % quantile.
        high_75: 75 % quantile.
        high_90: 90 % quantile.
        n: `(101,)`, number of known replies.
    """

    mean: Floats
    low_10: Floats
    low_25: Floats
    high_75: Floats
    high_90: Floats
    n: Integers


def mean_probability(logprobs: RaggedArray) -> MeanProbability:
    """Mean token probability by position, over the replies that have a token there.

    The curve ends before the first position with n below `LEAST_REPLIES`, or below `LEAST_SHARE` of the non-empty
    replies: beyond it, the curve would show which replies are long. Values that are not finite or at most
    `LEAST_LOGPROB` are left out.

    Args:
        logprobs: log-probabilities in nats, one row per reply.

    Returns:
        P positions; 0 if there are too few replies.

    Source: "The Confident Liar", section 4.1.

    >>> replies = RaggedArray.from_lists([np.log([0.9, 0.5])] * 30 + [np.log([0.6])] * 30)
    >>> result = mean_probability(replies)
    >>> result.mean.round(12).tolist(), result.n.tolist()
    ([0.75, 0.5], [60, 30])
    """
    reached = int(logprobs.lengths.max(initial=0))
    known = np.isfinite(logprobs.values) & (logprobs.values > LEAST_LOGPROB)
    positions = logprobs.positions()[known]
    n = np.bincount(positions, minlength=reached)
    total = np.bincount(positions, np.exp(logprobs.values[known].astype(np.float64)), minlength=reached)
    enough = (n >= LEAST_REPLIES) & (n >= LEAST_SHARE * np.count_nonzero(logprobs.lengths))
    kept = reached if enough.all() else int(np.argmin(enough))
    return MeanProbability(total[:kept] / n[:kept], n[:kept].astype(np.int64), reached)


def phases(trajectory: MeanProbability) -> tuple[Phase, Phase, Phase, Phase]:
    """Phases of the trajectory: opening, decline, plateau and late phase, as far as it extends.

    The decline runs from position 5 to the smoothed minimum of the first 50 positions, inclusive; it is empty if the
    minimum is in the opening. A phase that extends beyond the trajectory ends with it.

    Source: "The Confident Liar", section 4.1.

    >>> flat = MeanProbability(np.full(120, 0.8), np.full(120, 64), 120)
    >>> [(phase.name, phase.start, phase.stop) for phase in phases(flat)]
    [('opening', 0, 5), ('decline', 5, 5), ('plateau', 100, 120), ('late', 550, 550)]
    """
    early = trajectory.mean[:DECLINE_LIMIT]
    lowest = int(np.argmin(_smoothed(early))) if len(early) else 0
    return (
        _phase("opening", 0, OPENING_END, trajectory),
        _phase("decline", OPENING_END, lowest + 1, trajectory),
        _phase("plateau", *PLATEAU, trajectory),
        _phase("late", LATE_START, trajectory.reached, trajectory),
    )


def percent_grid(logprobs: RaggedArray) -> Floats:
    """Log-probabilities of each reply at 0, 1, ..., 100 % of its length, with linear interpolation between tokens.

    Point p of a reply of T tokens is at position p (T - 1) / 100: 0 % is the first token and 100 % the last.

    Args:
        logprobs: log-probabilities in nats, one row per reply.

    Returns:
        `(R, 101)`, nats; NaN for an empty reply, and where an interpolated token is not finite or at most
        `LEAST_LOGPROB`. A reply of one token is constant.

    Source: "Early-Token Confidence", section 4.3.

    >>> percent_grid(RaggedArray.from_lists([[-1.0, -3.0]]))[0, [0, 25, 50, 100]].tolist()
    [-1.0, -1.5, -2.0, -3.0]
    """
    result = np.full((len(logprobs), GRID), np.nan)
    rows = np.flatnonzero(logprobs.lengths)
    raw = logprobs.values.astype(np.float64)
    values = np.where(np.isfinite(raw) & (raw > LEAST_LOGPROB), raw, np.nan)
    # In whole hundredths of a token: floating-point rounding would miss points that fall on a token.
    hundredths = (logprobs.lengths[rows] - 1)[:, np.newaxis] * np.arange(GRID)
    whole, part = np.divmod(hundredths, GRID - 1)
    before = logprobs.offsets[:-1][rows][:, np.newaxis] + whole
    after = before + (part > 0)
    weight = part / (GRID - 1)
    result[rows] = values[before] * (1.0 - weight) + values[after] * weight
    return result


def bands(grid: npt.ArrayLike) -> TrajectoryBands:
    """Trajectory bands: mean and quantiles over replies at each point of the grid.

    Args:
        grid: `(R, 101)`, from `percent_grid`; NaN is left out.

    Raises:
        ValueError: for another shape.

    Source: "Early-Token Confidence", figure 2.
    """
    points = np.asarray(grid, np.float64)
    if points.ndim != 2 or points.shape[1] != GRID:
        raise ValueError(f"a grid must have the shape (R, {GRID}), not {points.shape}")
    known = ~np.isnan(points)
    n = known.sum(axis=0)
    ordered = np.sort(points, axis=0)  # NaN sorts last
    with np.errstate(invalid="ignore"):  # 0 / 0 where no reply is known
        mean = np.where(known, points, 0.0).sum(axis=0) / n
    low_10, low_25, high_75, high_90 = (_quantile(ordered, n, level) for level in (0.10, 0.25, 0.75, 0.90))
    return TrajectoryBands(mean, low_10, low_25, high_75, high_90, n.astype(np.int64))


def _quantile(ordered: Floats, n: Integers, level: float) -> Floats:
    """Quantile of the first n values of each column; columns are sorted."""
    if not len(ordered):
        return np.full(len(n), np.nan)
    position = level * np.maximum(n - 1, 0)
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(n - 1, 0))
    column = np.arange(len(n))
    low, high = ordered[below, column], ordered[above, column]
    return np.asarray(low + (high - low) * (position - below))


def _smoothed(curve: Floats) -> Floats:
    """Centred moving average over `SMOOTHING` positions, over fewer at the ends."""
    half = SMOOTHING // 2
    before = np.concatenate([[0.0], np.cumsum(curve)])
    position = np.arange(len(curve))
    low, high = np.maximum(position - half, 0), np.minimum(position + half + 1, len(curve))
    # Without rounding, floating-point noise would select among equal minima.
    return np.asarray((before[high] - before[low]) / (high - low)).round(12)


def _phase(name: str, start: int, stop: int, trajectory: MeanProbability) -> Phase:
    stop = max(start, min(stop, len(trajectory.mean)))
    if stop == start:
        return Phase(name, start, start, float("nan"), 0)
    return Phase(name, start, stop, float(trajectory.mean[start:stop].mean()), int(trajectory.n[start:stop].min()))
