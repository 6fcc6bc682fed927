"""Series of bounded length over a run: running accuracy by verdicts, and counts by time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moot.metrics.significance import wilson_interval

MOST_POINTS = 240
"""Most points of a series; beyond that, every other one is dropped."""

Floats = npt.NDArray[np.float64]


class AccuracyPoint(NamedTuple):
    """Accuracy after a number of scored verdicts, with its Wilson interval (95 %)."""

    scored: int
    accuracy: float
    low: float
    high: float


class RunningAccuracy:
    """Accuracy over the verdicts so far, in the order of the record, at `MOST_POINTS` points at most.

    Attributes:
        scored, correct: so far.
    """

    def __init__(self) -> None:
        self.scored = self.correct = 0
        self._every = 1
        self._points: list[AccuracyPoint] = []

    def add(self, correct: npt.NDArray[np.bool_]) -> None:
        """Add verdicts that can be scored, in order."""
        right = self.correct + np.cumsum(correct)
        first = self._every - self.scored % self._every
        for n in range(first, len(correct) + 1, self._every):
            self._points.append(_point(self.scored + n, int(right[n - 1])))
        self.scored += len(correct)
        self.correct += int(correct.sum())
        while len(self._points) > MOST_POINTS:
            self._every *= 2
            self._points = [point for point in self._points if point.scored % self._every == 0]

    def points(self) -> list[AccuracyPoint]:
        """Points; the last one is the current state."""
        now = [_point(self.scored, self.correct)] if self.scored else []
        return [*self._points, *now] if not self._points or now != self._points[-1:] else self._points


def _point(scored: int, correct: int) -> AccuracyPoint:
    ends = wilson_interval(correct, scored)
    return AccuracyPoint(scored, correct / scored, ends.low, ends.high)


class TimeBins:
    """Sums by time, in at most `MOST_POINTS` bins of equal width, which doubles as the run gets longer.

    Attributes:
        began_at: Unix time of the first bin's start; None while there is nothing.
        width_s: width of a bin.
    """

    def __init__(self) -> None:
        self.began_at: float | None = None
        self.width_s = 5.0
        self._sums = np.zeros(MOST_POINTS)
        self._last = 0

    def add(self, at: Floats, amounts: Floats) -> None:
        """Add amounts at Unix times; earlier ones count in the first bin."""
        if not len(at):
            return
        if self.began_at is None:
            self.began_at = math.floor(float(at.min()))
        since = np.maximum(0.0, at - self.began_at)
        while since.max() >= MOST_POINTS * self.width_s:
            halved = self._sums.reshape(-1, 2).sum(axis=1)
            self._sums = np.concatenate((halved, np.zeros(MOST_POINTS - len(halved))))
            self.width_s *= 2
            self._last //= 2
        places = (since / self.width_s).astype(np.int64)
        self._sums += np.bincount(places, amounts, MOST_POINTS)
        self._last = max(self._last, int(places.max()))

    def rates(self) -> tuple[list[float], list[float]]:
        """Minutes since the start, and amounts per second there; the unfinished last bin is excluded."""
        minutes = (np.arange(self._last) + 0.5) * self.width_s / 60.0
        return minutes.tolist(), (self._sums[: self._last] / self.width_s).tolist()


class RecentRate:
    """Amounts per second over the last `window_s` seconds."""

    def __init__(self, window_s: float = 30.0) -> None:
        self._window_s = window_s
        self._seen: list[tuple[float, float]] = []

    def update(self, now: float, total: float) -> None:
        """Update with the total at a time (monotonic seconds)."""
        if self._seen and now - self._seen[-1][0] < self._window_s / 60:
            return
        self._seen.append((now, total))
        while len(self._seen) > 2 and now - self._seen[1][0] >= self._window_s:
            del self._seen[0]

    def per_s(self) -> float | None:
        """The rate; None before it is known."""
        if len(self._seen) < 2:
            return None
        (first, was), (last, now) = self._seen[0], self._seen[-1]
        return (now - was) / (last - first)
