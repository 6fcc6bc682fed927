"""Divergences of confidence, judged quality and correctness: one definition, for replies and for counts of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats

Booleans = npt.NDArray[np.bool_]

LOW_QUALITY: Final = 5.0
"""Q up to this is low; so is that of a flagged reply."""

HIGH_QUALITY: Final = 8.0
"""Q from this on is high, unless the reply is flagged."""

TAIL: Final = 0.25
"""Least share of replies that count as confident (highest mean log-probability), and as unsure (lowest)."""

FLAGGED: Final = 0.5
"""Share of marks from which a reply counts as flagged."""

CONFIDENT_BUT_WEAK: Final = "confident but weak"
GOOD_BUT_WRONG: Final = "good reasoning, wrong answer"
UNSURE_BUT_RIGHT: Final = "unsure but right"

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class ConditionPair:
    """Two conditions that contradict each other, on R replies (or on R cells of equal replies).

    Attributes:
        name: of the divergence.
        known: `(R,)`, where both are known.
        first, second: `(R,)`, where each holds; false where it is unknown.
    """

    name: str
    known: Booleans
    first: Booleans
    second: Booleans


def confidence_ends(mu: Floats, tail: float = TAIL, counts: npt.ArrayLike = 1) -> tuple[float, float]:
    """Confidence thresholds: up to which a reply is unsure, and from which it is confident.

    Both are values that occur: the smallest that at least `tail` of the replies do not exceed, and the largest that at
    least `tail` of them reach.

    Args:
        mu: `(R,)`, confidence on any scale that rises with it; NaN is unknown.
        tail: in (0, 0.5).
        counts: how many replies each entry represents, `(R,)` or one number for all.

    Returns:
        The low end and the high one; NaN where nothing is known, and where the low one is not below the high one:
        replies that are all alike are neither confident nor unsure.

    >>> confidence_ends(np.array([-0.4, -0.3, -0.2, -0.1])), confidence_ends(np.array([-0.1, -0.1]))
    ((-0.4, -0.1), (nan, nan))
    """
    known = np.isfinite(mu)
    values, place = np.unique(mu[known], return_inverse=True)
    sizes = np.bincount(place, np.broadcast_to(counts, mu.shape)[known], len(values))
    enough = tail * sizes.sum() - _ROUNDING
    if enough <= 0.0:
        return float("nan"), float("nan")
    low = values[np.argmax(np.cumsum(sizes) >= enough)]
    high = values[::-1][np.argmax(np.cumsum(sizes[::-1]) >= enough)]
    apart = high - low > _ROUNDING * abs(low)
    return (float(low), float(high)) if apart else (float("nan"), float("nan"))


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

    - `confident but weak`: mu at the high end or above; Q low, or flagged. Perhaps a hallucination.
    - `good reasoning, wrong answer`: Q high and not flagged; the answer wrong. Argued well, put together badly.
    - `unsure but right`: mu at the low end or below; the answer right.

    Args:
        mu: `(R,)`, confidence; NaN is unknown, as in all that follow.
        quality: `(R,)`, Q.
        flagged: `(R,)`, 1 or 0.
        correct: `(R,)`, 1 or 0.
        ends: as `confidence_ends` gives them; where they are NaN, no confidence is known to be high or low.
        low_quality, high_quality: the ends of Q.

    >>> mu, quality, correct = np.array([-0.1, -0.9]), np.array([4.0, 9.0]), np.array([0.0, 1.0])
    >>> found = conditions(mu, quality, np.zeros(2), correct, (-0.9, -0.1))
    >>> [(each.name, (each.first & each.second).tolist()) for each in found][::2]
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
