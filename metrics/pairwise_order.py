"""Judges that compare two texts in both orders: does the place decide, and who is right where it does not?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.bootstrap import BootstrapInterval
from moot.metrics.cluster_bootstrap import cluster_weights
from moot.metrics.distribution import Floats
from moot.metrics.proportion import Interval, wilson_interval
from moot.metrics.rater_intervals import percentile_interval
from moot.metrics.significance import mcnemar_exact

Winners = npt.ArrayLike | Sequence[float | None]
"""`(n,)`, the TEXT that won, whatever its place: 1 or 2, 0 for a tie, NaN (or None) for no verdict."""


@dataclass(frozen=True, slots=True)
class OrderCounts:
    """One judge on n pairs of texts, each shown in both orders.

    Attributes:
        consistent: pairs of which the same text won in both orders.
        first_twice: pairs of which the text shown first won in both orders, so another one each time.
        second_twice: pairs of which the text shown second won in both orders.
        first_and_tie: pairs with a tie in one order and the text shown first in the other.
        second_and_tie: pairs with a tie in one order and the text shown second in the other.
        tied_twice: pairs with a tie in both orders.
        missing: pairs without a verdict in one order or both; they are in none of the other counts.
        judged: consistent pairs whose right text is known.
        right: how many of these the judge got right.
    """

    consistent: int
    first_twice: int
    second_twice: int
    first_and_tie: int
    second_and_tie: int
    tied_twice: int
    missing: int
    judged: int
    right: int

    @property
    def decided(self) -> int:
        """Pairs with a winner in both orders."""
        return self.consistent + self.first_twice + self.second_twice

    @property
    def pairs(self) -> int:
        """Pairs with a verdict in both orders, ties included."""
        return self.decided + self.first_and_tie + self.second_and_tie + self.tied_twice

    @property
    def first_shown_share(self) -> float:
        """Of all verdicts in both orders that name a winner, the share that name the text shown first.

        A judge whom the place does not move has exactly 1/2, right or wrong; NaN without such a verdict.
        """
        verdicts = 2 * self.decided + self.first_and_tie + self.second_and_tie
        first = self.consistent + 2 * self.first_twice + self.first_and_tie
        return first / verdicts if verdicts else math.nan

    @property
    def inconsistency(self) -> float:
        """Share of the decided pairs whose winner changed with the order; NaN without a decided pair."""
        return (self.first_twice + self.second_twice) / self.decided if self.decided else math.nan

    @property
    def inconsistency_interval(self) -> Interval:
        """Wilson's 95 % interval of `inconsistency`, for pairs that are independent of each other."""
        return wilson_interval(self.first_twice + self.second_twice, self.decided)

    @property
    def bias_p_value(self) -> float:
        """Exact two-sided test that a winner that changes with the order is as often the first as the second shown.

        Of independent pairs; 1 when no winner changed. Pairs with a tie are left out.
        """
        return mcnemar_exact(self.first_twice, self.second_twice).p_value

    @property
    def accuracy(self) -> float:
        """Share of consistent pairs with a known right text that the judge got right; NaN without one."""
        return self.right / self.judged if self.judged else math.nan

    @property
    def accuracy_interval(self) -> Interval:
        """Wilson's 95 % interval of `accuracy`, for pairs that are independent of each other."""
        return wilson_interval(self.right, self.judged)


@dataclass(frozen=True, slots=True)
class OrderIntervals:
    """95 % intervals by cluster bootstrap of `OrderCounts`' figures; NaN where no resample gave a value."""

    first_shown_share: BootstrapInterval
    inconsistency: BootstrapInterval
    accuracy: BootstrapInterval


def order_counts(text1_first: Winners, text2_first: Winners, right_text: Winners | None = None) -> OrderCounts:
    """Count a judge's verdicts on pairs in both orders.

    Args:
        text1_first: `(n,)`, the text that won when text 1 was shown first: 1 or 2, 0 for a tie, NaN for no verdict.
        text2_first: `(n,)`, the text that won when text 2 was shown first, as the NUMBER OF THE TEXT (2 is the text
            shown first), not its place.
        right_text: `(n,)`, 1 or 2; 0 (a tie) or NaN: no text is right. None: no pair has a right one.

    Raises:
        ValueError: if they are not vectors of one length, or hold anything else.

    Source: Zheng et al., "Judging LLM-as-a-Judge", 2023, section 3.3; Wang et al., "Large Language Models are not Fair
    Evaluators", 2023.

    >>> found = order_counts([1, 1, 2, 0], [1, 2, 2, 2], right_text=[1, 2, 1, 1])
    >>> found.consistent, found.first_twice, found.first_and_tie, found.first_shown_share, found.inconsistency
    (2, 1, 1, 0.7142857142857143, 0.3333333333333333)
    """
    return _counts(_kinds(text1_first, text2_first, right_text))


def order_intervals(
    text1_first: Winners,
    text2_first: Winners,
    right_text: Winners | None = None,
    *,
    clusters: npt.ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> OrderIntervals:
    """Intervals of the first-shown share, the inconsistency and the accuracy, drawing clusters of pairs.

    Two verdicts on one pair are not independent, so even pairs of their own are drawn whole. Where a count is 0 or all,
    the bootstrap has no width; take `OrderCounts`' Wilson intervals then.

    Args:
        text1_first, text2_first, right_text: as for `order_counts`.
        clusters: `(n,)`, of any sortable type; None: every pair is one of its own.
        resamples: how many draws.
        seed: of the draws.

    Raises:
        ValueError: as `order_counts`, for no pair or no resample, or if there is not one cluster per pair.
    """
    kinds = _kinds(text1_first, text2_first, right_text)
    pairs = len(kinds["missing"])
    drawn = np.arange(pairs) if clusters is None else np.asarray(clusters)
    if drawn.shape != (pairs,):
        raise ValueError(f"{pairs} pairs but clusters of shape {drawn.shape}")
    weights = cluster_weights(drawn, resamples, seed).astype(np.float64)
    sums = {kind: weights @ flags.astype(np.float64) for kind, flags in kinds.items()}
    changed = sums["first_twice"] + sums["second_twice"]
    decided = sums["consistent"] + changed
    first = sums["consistent"] + 2 * sums["first_twice"] + sums["first_and_tie"]
    verdicts = 2 * decided + sums["first_and_tie"] + sums["second_and_tie"]
    return OrderIntervals(
        first_shown_share=_interval(first, verdicts),
        inconsistency=_interval(changed, decided),
        accuracy=_interval(sums["right"], sums["judged"]),
    )


def _kinds(text1_first: Winners, text2_first: Winners, right_text: Winners | None) -> dict[str, npt.NDArray[np.bool_]]:
    """For each count of `OrderCounts`, which pairs are in it."""
    a, b = _winners(text1_first), _winners(text2_first)
    right = np.full(len(a), np.nan) if right_text is None else _winners(right_text)
    if not len(a) == len(b) == len(right):
        raise ValueError(f"vectors of one length expected, not {len(a)}, {len(b)} and {len(right)}")
    missing = np.isnan(a) | np.isnan(b)
    consistent = (a == b) & (a > 0.0)
    judged = consistent & (right > 0.0)
    return {
        "consistent": consistent,
        "first_twice": (a == 1.0) & (b == 2.0),
        "second_twice": (a == 2.0) & (b == 1.0),
        "first_and_tie": ((a == 1.0) & (b == 0.0)) | ((a == 0.0) & (b == 2.0)),
        "second_and_tie": ((a == 2.0) & (b == 0.0)) | ((a == 0.0) & (b == 1.0)),
        "tied_twice": (a == 0.0) & (b == 0.0),
        "missing": missing,
        "judged": judged,
        "right": judged & (a == right),
    }


def _counts(kinds: dict[str, npt.NDArray[np.bool_]]) -> OrderCounts:
    """How many pairs are of each kind."""
    return OrderCounts(**{kind: int(flags.sum()) for kind, flags in kinds.items()})


def _winners(given: Winners) -> Floats:
    """Checked winners."""
    found = np.asarray(given, dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"a vector of winners expected, not {found.shape}")
    if not np.isin(found[~np.isnan(found)], (0.0, 1.0, 2.0)).all():
        raise ValueError("a winner is text 1 or 2, 0 for a tie, or unknown")
    return found


def _interval(above: Floats, below: Floats) -> BootstrapInterval:
    """The interval of a ratio; a resample with nothing below gives none."""
    return percentile_interval(np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0.0))
