"""Confidence trajectories along replies: by absolute position, in four phases, and on a grid from 0 to 100 %."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from moot.metrics.confidence_features import LEAST_LOGPROB
from moot.metrics.distribution import Floats
from moot.metrics.ragged import RaggedArray

Integers = npt.NDArray[np.int64]

LEAST_REPLIES: Final = 30
"""A position that fewer replies reach is cut off, with all that follow."""

LEAST_SHARE: Final = 0.25
"""A position that a smaller share of the replies reaches is cut off: long replies are not like the others."""

GRID: Final = 101
"""Points of the grid from 0 to 100 % of a reply."""

OPENING_END: Final = 5
"""The opening is the positions before this one."""

DECLINE_LIMIT: Final = 50
"""The decline ends at the smoothed minimum before this position."""

PLATEAU: Final = (100, 400)
"""First position of the plateau, and the one after its last."""

LATE_START: Final = 550
"""First position of the late phase, which lasts to the end."""

SMOOTHING: Final = 5
"""Positions in the centred moving average in which the decline's minimum is sought; fewer at the ends."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanProbability:
    """Mean token probability by absolute position.

    Attributes:
        mean: `(P,)`, in [0, 1]; position 0 is a reply's first token.
        n: `(P,)`, how many replies have a known probability there.
        reached: how many positions the longest reply has; those from P on were cut off.
    """

    mean: Floats
    n: Integers
    reached: int


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of the mean trajectory.

    Attributes:
        name: `opening`, `decline`, `plateau` or `late`.
        start: its first position.
        stop: the position after the last one that was averaged; `start` when nothing was.
        mean: of the mean probabilities at its positions, each counting alike; NaN when nothing was averaged.
        n: the smallest number of replies at one of its positions; 0 when nothing was averaged.
    """

    name: str
    start: int
    stop: int
    mean: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class TrajectoryBands:
    """Mean and quantiles of log-probabilities at each point of the grid.

    Attributes:
        mean: `(101,)`, nats; NaN where no reply is known.
        low_10: `(101,)`, the 10 % quantile, interpolated linearly, as the three others.
        low_25: the 25 % quantile.
        high_75: the 75 % quantile.
        high_90: the 90 % quantile.
        n: `(101,)`, how many replies are known there.
    """

    mean: Floats
    low_10: Floats
    low_25: Floats
    high_75: Floats
    high_90: Floats
    n: Integers


def mean_probability(logprobs: RaggedArray) -> MeanProbability:
    """Mean token probability by position, over the replies that have a token there.

    Cut before the first position with n < `LEAST_REPLIES`, or n below `LEAST_SHARE` of the replies that are not empty:
    beyond, the curve shows which replies are long, not how they continue. A value that is not finite or is at most
    `LEAST_LOGPROB` is left out at its position.

    Args:
        logprobs: nats, one row for each reply.

    Returns:
        P positions; none of them when there are too few replies.

    Source: "The Confident Liar", section 4.1.

    >>> replies = RaggedArray.from_lists([np.log([0.9, 0.5])] * 30 + [np.log([0.6])] * 30)
    >>> found = mean_probability(replies)
    >>> found.mean.round(12).tolist(), found.n.tolist()
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
    """Phases of the trajectory: opening, decline, plateau and late phase, as far as it reaches.

    The decline runs from position 5 to the smoothed minimum among the first 50 positions, which it includes; it is
    empty when that minimum lies in the opening. A phase that was cut off ends where the trajectory does.

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
    """Log-probabilities of each reply at 0, 1, ..., 100 % of its length, interpolated linearly between tokens.

    Point p of a reply of T tokens lies at the position p (T - 1) / 100, so 0 % is the first token and 100 % the last.

    Args:
        logprobs: nats, one row for each reply.

    Returns:
        `(R, 101)`, nats; NaN for an empty reply, and where a token that counts is not finite or at most
        `LEAST_LOGPROB`. A reply of one token has the same value at all points.

    Source: "Early-Token Confidence", section 4.3.

    >>> percent_grid(RaggedArray.from_lists([[-1.0, -3.0]]))[0, [0, 25, 50, 100]].tolist()
    [-1.0, -1.5, -2.0, -3.0]
    """
    found = np.full((len(logprobs), GRID), np.nan)
    rows = np.flatnonzero(logprobs.lengths)
    raw = logprobs.values.astype(np.float64)
    values = np.where(np.isfinite(raw) & (raw > LEAST_LOGPROB), raw, np.nan)
    # Whole hundredths of a token: in floating point, a point that falls on a token may be off by rounding.
    hundredths = (logprobs.lengths[rows] - 1)[:, np.newaxis] * np.arange(GRID)
    whole, part = np.divmod(hundredths, GRID - 1)
    before = logprobs.offsets[:-1][rows][:, np.newaxis] + whole
    after = before + (part > 0)
    weight = part / (GRID - 1)
    found[rows] = values[before] * (1.0 - weight) + values[after] * weight
    return found


def bands(grid: npt.ArrayLike) -> TrajectoryBands:
    """Trajectory bands: mean and quantiles over replies at each point of the grid.

    Args:
        grid: `(R, 101)`, as `percent_grid` gives it; NaN is left out.

    Raises:
        ValueError: for another shape.

    Source: "Early-Token Confidence", figure 2.
    """
    points = np.asarray(grid, np.float64)
    if points.ndim != 2 or points.shape[1] != GRID:
        raise ValueError(f"a grid has the shape (R, {GRID}), not {points.shape}")
    known = ~np.isnan(points)
    n = known.sum(axis=0)
    ordered = np.sort(points, axis=0)  # NaN sorts last
    with np.errstate(invalid="ignore"):  # 0 / 0 where no reply is known
        mean = np.where(known, points, 0.0).sum(axis=0) / n
    low_10, low_25, high_75, high_90 = (_quantile(ordered, n, level) for level in (0.10, 0.25, 0.75, 0.90))
    return TrajectoryBands(mean, low_10, low_25, high_75, high_90, n.astype(np.int64))


def _quantile(ordered: Floats, n: Integers, level: float) -> Floats:
    """Quantile of the first n values of each column, which are sorted."""
    if not len(ordered):
        return np.full(len(n), np.nan)
    place = level * np.maximum(n - 1, 0)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(n - 1, 0))
    column = np.arange(len(n))
    low, high = ordered[below, column], ordered[above, column]
    return np.asarray(low + (high - low) * (place - below))


def _smoothed(curve: Floats) -> Floats:
    """A centred moving average over `SMOOTHING` positions, over fewer at the ends."""
    half = SMOOTHING // 2
    before = np.concatenate([[0.0], np.cumsum(curve)])
    place = np.arange(len(curve))
    low, high = np.maximum(place - half, 0), np.minimum(place + half + 1, len(curve))
    # Rounding would otherwise choose among positions that are equally low.
    return np.asarray((before[high] - before[low]) / (high - low)).round(12)


def _phase(name: str, start: int, stop: int, trajectory: MeanProbability) -> Phase:
    stop = max(start, min(stop, len(trajectory.mean)))
    if stop == start:
        return Phase(name, start, start, float("nan"), 0)
    return Phase(name, start, stop, float(trajectory.mean[start:stop].mean()), int(trajectory.n[start:stop].min()))
