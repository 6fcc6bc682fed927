"""Divergences of confidence, judged quality and correctness, for single replies and for counts of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats

Booleans = npt.NDArray[np.bool_]

LOW_QUALITY: Final = 5.0
"""Upper bound of low quality Q; the quality of a flagged reply is low, too."""

HIGH_QUALITY: Final = 8.0
"""Lower bound of high quality Q, of replies that are not flagged."""

TAIL: Final = 0.25
"""Minimum proportion of replies that are confident (highest mean log-probability), and unsure (lowest)."""

FLAGGED: Final = 0.5
"""Minimum proportion of judgments that flag a reply for it to be flagged."""

CONFIDENT_BUT_WEAK: Final = "confident but weak"
GOOD_BUT_WRONG: Final = "good reasoning, wrong answer"
UNSURE_BUT_RIGHT: Final = "unsure but right"

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class ConditionPair:
    """Two conditions that contradict each other, on R replies (or on R cells of equal replies).

    Attributes:
        name: name of the divergence.
        known: `(R,)`, whether both conditions are known.
        first, second: `(R,)`, whether each applies; False if unknown.
    """

    name: str
    known: Booleans
    first: Booleans
    second: Booleans


def confidence_ends(mu: Floats, tail: float = TAIL, counts: npt.ArrayLike = 1) -> tuple[float, float]:
    """Confidence thresholds: the upper one of unsure replies, and the lower one of confident replies.

    Both are observed values: the smallest that at least `tail` of the replies do not exceed, and the largest that at
    least `tail` of them reach.

    Args:
        mu: `(R,)`, confidence on any increasing scale; NaN if unknown.
        tail: in (0, 0.5).
        counts: number of replies of each entry, `(R,)` or one number for all.

    Returns:
        Low and high threshold; NaN if nothing is known, or the low one is not below the high one (equal replies are
        neither confident nor unsure).

    >>> confidence_ends(np.array([-0.4, -0.3, -0.2, -0.1])), confidence_ends(np.array([-0.1, -0.1]))
    ((-0.4, -0.1), (nan, nan))
    """
    known = np.isfinite(mu)
    values, inverse = np.unique(mu[known], return_inverse=True)
    sizes = np.bincount(inverse, np.broadcast_to(counts, mu.shape)[known], len(values))
    enough = tail * sizes.sum() - _ROUNDING
    if enough <= 0.0:
        return float("nan"), float("nan")
    low = values[np.argmax(np.cumsum(sizes) >= enough)]
    high = values[::-1][np.argmax(np.cumsum(sizes[::-1]) >= enough)]
    distinct = high - low > _ROUNDING * abs(low)
    return (float(low), float(high)) if distinct else (float("nan"), float("nan"))


def conditions(
    mu: Floats,
    quality: Floats,
    flagged: Floats,
    correct: Floats,
    ends: tuple[float, float],
    *,
    low_quality: float = LOW_QUALITY,
    high_quality: float = HIGH_QUALITY,
) -> Iterator[ConditionPair]:
    """Conditions of the three divergences.

    - `confident but weak`: mu at or above the high threshold; Q low, or flagged. Perhaps a hallucination.
    - `good reasoning, wrong answer`: Q high and not flagged; the answer wrong.
    - `unsure but right`: mu at or below the low threshold; the answer right.

    Args:
        mu: `(R,)`, confidence; NaN if unknown, as in the other arrays.
        quality: `(R,)`, Q.
        flagged: `(R,)`, 1 or 0.
        correct: `(R,)`, 1 or 0.
        ends: thresholds, from `confidence_ends`; if they are NaN, no confidence is known to be high or low.
        low_quality, high_quality: thresholds of Q.

    >>> mu, quality, correct = np.array([-0.1, -0.9]), np.array([4.0, 9.0]), np.array([0.0, 1.0])
    >>> result = conditions(mu, quality, np.zeros(2), correct, (-0.9, -0.1))
    >>> [(each.name, (each.first & each.second).tolist()) for each in result][::2]
    [('confident but weak', [True, False]), ('unsure but right', [False, True])]
    """
    low, high = ends
    rated = np.isfinite(mu) & np.isfinite(high)
    judged, answered = np.isfinite(quality), np.isfinite(correct)
    weak = (quality <= low_quality) | (flagged == 1.0)
    good = (quality >= high_quality) & (flagged != 1.0)
    yield ConditionPair(CONFIDENT_BUT_WEAK, rated & judged, mu >= high, weak)
    yield ConditionPair(GOOD_BUT_WRONG, judged & answered, good, correct == 0.0)
    yield ConditionPair(UNSURE_BUT_RIGHT, rated & answered, mu <= low, correct == 1.0)
