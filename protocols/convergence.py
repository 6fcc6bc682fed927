"""When a debate has nothing more to give."""

from __future__ import annotations

from collections.abc import Sequence


def plateaued(scores: Sequence[float | None], patience: int, min_delta: float) -> bool:
    """Whether none of the last `patience` known scores rose over the best one before them by at least `min_delta`.

    SocraSynth's printed rule goes on while the new score is at least the last one. It begins without a last score,
    goes on for ever on a plateau, and stops at the first dip that a noisy judge makes. Here a dip alone stops nothing.

    Args:
        scores: one per round, in order; None where it is unknown, which is neither a rise nor a round without one.
        patience: how many rounds may pass without a rise; at least 1.
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
