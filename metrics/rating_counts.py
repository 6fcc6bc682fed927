"""Ratings as counts: how many raters put each unit on each level, which is all that agreement statistics need."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats


@dataclass(frozen=True, slots=True)
class RatingCounts:
    """Ratings without the raters' names.

    Attributes:
        levels: `(k,)`, ascending.
        counts: `(units, k)`, how many raters put the unit on the level.
        raters: `(units,)`, how many raters rated the unit, 0 for a unit that nobody rated.
    """

    levels: Floats
    counts: Floats
    raters: Floats

    def pairable(self) -> npt.NDArray[np.bool_]:
        """`(units,)`, whether two raters or more rated the unit, without which it says nothing of agreement."""
        return self.raters >= 2.0


def rating_counts(ratings: npt.ArrayLike, levels: Sequence[float] | None = None) -> RatingCounts:
    """Count the ratings.

    Args:
        ratings: `(raters, units)`, NaN where a rater did not rate a unit.
        levels: every level that could have been given; None: those that were.

    Raises:
        ValueError: if the ratings are no matrix, one is infinite or is none of the levels, or a level stands twice.

    >>> rating_counts([[1, 2, float("nan")], [1, 3, 3]]).counts.tolist()
    [[2.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    """
    given = np.asarray(ratings, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"a matrix of raters x units expected, not {given.shape}")
    rated = ~np.isnan(given)
    if np.isinf(given).any():
        raise ValueError("a rating is infinite; a missing one is NaN")
    possible = np.unique(given[rated] if levels is None else np.asarray(levels, dtype=np.float64))
    if levels is not None and len(possible) != len(levels):
        raise ValueError("each level is listed once")
    if not np.isin(given[rated], possible).all():
        raise ValueError(f"a rating is none of the levels {', '.join(f'{level:g}' for level in possible)}")
    units = np.broadcast_to(np.arange(given.shape[1]), given.shape)[rated]
    cells = units * len(possible) + np.searchsorted(possible, given[rated])
    counts = np.bincount(cells, minlength=given.shape[1] * len(possible)).astype(np.float64)
    return RatingCounts(possible, counts.reshape(given.shape[1], len(possible)), rated.sum(axis=0).astype(np.float64))
