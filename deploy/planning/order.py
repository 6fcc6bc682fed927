"""Which ask of a debate waited for which, read off the record's times.

A protocol that waits for a reply asks on only after it has come. So an ask may wait for any reply that had come when it
was asked, and for no other. With the replies that had come before it as what each ask waits for, the recorded times are
reproduced, and nothing begins before what it needs. That is too strict where two chains of asks go side by side: one
step is then asked after a reply of the other chain by chance. Such a pair is found by its paths: two steps of which
the second was ever asked before the first one's reply had come, in any debate of the pilot, do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_SKEW_SHARE, _SKEW_S = 0.1, 0.05
"""Clocks of two nodes differ: a reply that came by so much of its latency, and at most so many seconds, after an ask
was made may have come before it. Asks made together do not look like that: their replies come a whole latency later."""

Bools = npt.NDArray[np.bool_]


class Timed(NamedTuple):
    """An ask as the record has it; times are Unix seconds.

    Attributes:
        path: its step.
        asked_at: when the protocol asked.
        began_at: when an agent took it up.
        ended_at: when its reply had come.
    """

    path: str
    asked_at: float
    began_at: float
    ended_at: float


def waits_for(debates: Sequence[Sequence[Timed]]) -> list[list[tuple[int, ...]]]:
    """For each ask of each debate the asks of that debate that it waited for, without those that these waited for.

    Args:
        debates: the asks of each debate, in any order; the results have that order.
    """
    numbers = {path: n for n, path in enumerate(sorted({ask.path for asks in debates for ask in asks}))}
    came_before = [_came_before(asks) for asks in debates]
    codes = [_pairs(np.array([numbers[ask.path] for ask in asks], np.int64), len(numbers)) for asks in debates]
    overlapped = _distinct([pairs[~before] for pairs, before in zip(codes, came_before, strict=True)])
    return [_nearest(before & ~np.isin(pairs, overlapped)) for pairs, before in zip(codes, came_before, strict=True)]


def _came_before(asks: Sequence[Timed]) -> Bools:
    """[i, j]: whether the reply to ask i had come when ask j was made."""
    asked, began, ended = (
        np.array([getattr(ask, name) for ask in asks], float) for name in ("asked_at", "began_at", "ended_at")
    )
    leeway = np.minimum(_SKEW_S, _SKEW_SHARE * np.maximum(0.0, ended - began))
    before: Bools = (ended - leeway)[:, None] <= asked[None, :]
    order = np.argsort(ended, kind="stable")
    rank = np.empty(len(asks), int)
    rank[order] = np.arange(len(asks))
    return before & (rank[:, None] < rank[None, :])  # no two asks wait for each other, whatever the clocks say


def _pairs(paths: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    pairs: npt.NDArray[np.int64] = paths[:, None] * count + paths[None, :]
    return pairs


def _distinct(codes: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.unique(np.concatenate([np.zeros(0, np.int64), *map(np.unique, codes)]))


def _nearest(before: Bools) -> list[tuple[int, ...]]:
    """By ask those before it that are before no other one before it."""
    reach = before.astype(np.float32)
    between = (reach @ reach) > 0.0
    return [tuple(np.flatnonzero(column).tolist()) for column in (before & ~between).T]
