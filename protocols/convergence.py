"""Convergence of a debate: its distributions converged, stalled or swapped, or its quality no longer rises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from moot.metrics.divergence import total_variation

Rest = Literal["converged", "stalled"]

_ROUNDING = 1e-9
"""Rounding tolerance: models state two decimals, and a move of exactly the bound must not depend on subtraction."""


@dataclass(frozen=True, slots=True)
class DistributionShift:
    """Shift of the sides' distributions from one round to the next.

    Attributes:
        moves: per side, the total variation to its last distribution, in [0, 1].
        swapped: whether two sides took each other's last position. All symmetric divergences are then unchanged,
            although the debate has not converged.
    """

    moves: tuple[float, ...]
    swapped: bool


def distribution_shift(
    before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], epsilon: float
) -> DistributionShift:
    """Compares two rounds.

    Args:
        before, after: `(sides, classes)`, one distribution per row.
        epsilon: total variation below which two distributions count as the same.
    """
    moves = total_variation(before, after)
    swapped = any(
        float(total_variation(before[i], before[j])) >= epsilon
        and float(total_variation(after[i], before[j])) < epsilon
        and float(total_variation(after[j], before[i])) < epsilon
        for i, j in combinations(range(len(after)), 2)
    )
    return DistributionShift(tuple(float(move) for move in np.atleast_1d(moves)), swapped)


def convergence_status(moves: Sequence[float], divergence: float, *, epsilon: float, tau: float) -> Rest | None:
    """Whether and how a debate has converged; None when it has not.

    `max(moves) < epsilon` and `divergence < tau`: converged. `max(moves) < epsilon` alone: stalled, because no side
    moves and they still differ. The source compares changes of WD, MI and JSD instead; see `printed_convergence`.

    Args:
        moves: total variation of each side's distribution in the last round.
        divergence: current Jensen-Shannon divergence between the sides, in nats.
        epsilon: bound on the moves.
        tau: bound on the divergence, in nats.

    >>> [convergence_status([0.01, 0.0], change, epsilon=0.05, tau=0.02) for change in (0.002, 0.4)]
    ['converged', 'stalled']
    """
    if max(moves) > epsilon - _ROUNDING:
        return None
    return "converged" if divergence < tau - _ROUNDING else "stalled"


def printed_convergence(changes: Sequence[float | None], crit_change: float | None, *, epsilon: float) -> bool:
    """Rule of EVINCE, figure 7.1: |change| of WD, MI and JSD below `epsilon`, and CRIT no longer rising.

    The figure has signed differences, the text absolute ones; these are absolute, except for CRIT, which may "plateau
    or decline". On a mutual swap, which changes no symmetric measure, it depends on CRIT alone: the printed swap
    (jaundice, round 2) does not end the debate, because CRIT is printed as 0.76, then 0.83. An unknown value is no sign
    of convergence.

    >>> printed_convergence([0.0, 0.0, 0.004], -0.2, epsilon=0.01)
    True
    >>> printed_convergence([0.0, 0.0, 0.0], None, epsilon=0.01)
    False
    >>> printed_convergence([0.0, 0.0, 0.0], 0.83 - 0.76, epsilon=0.01)
    False
    """
    if crit_change is None or crit_change >= epsilon:
        return False
    return all(change is not None and abs(change) < epsilon for change in changes)


def plateaued(scores: Sequence[float | None], patience: int, min_delta: float) -> bool:
    """Whether none of the last `patience` known scores exceeds the best one before them by at least `min_delta`.

    SocraSynth's printed rule continues while the new score is at least the last one. It begins without a last score,
    continues forever on a plateau, and stops at the first dip that a noisy judge causes. Here a dip alone stops
    nothing.

    Args:
        scores: one per round, in order; None for an unknown score, which is neither a rise nor a round without one.
        patience: number of rounds without a rise; at least 1.
        min_delta: the least rise that counts; 0: any.

    >>> plateaued([0.5, 0.6, 0.55, 0.6], 2, 0.01)
    True
    >>> plateaued([0.5, 0.6, 0.55, 0.7], 2, 0.01), plateaued([0.5, None, 0.4], 2, 0.01)
    (False, False)
    """
    known = [score for score in scores if score is not None]
    if len(known) <= patience:
        return False
    rise = max(known[-patience:]) - max(known[:-patience])
    return rise <= 0.0 or rise < min_delta
