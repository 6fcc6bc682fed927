"""The simulation of a run: events in the order of their times, from the first debate's opening to the last verdict."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moot.deploy.planning.endpoint import Endpoint
from moot.deploy.planning.programme import Part, Programme
from moot.deploy.planning.scenario import Scenario

_READY, _ENDED, _CLOSED, _WAKE = range(4)
_NEVER = float("inf")


class Level:
    """How long a number has stood at each of its values."""

    def __init__(self) -> None:
        self.now, self._since = 0, 0.0
        self._seconds: dict[int, float] = {}

    def change(self, at: float, by: int) -> None:
        """It is other by so much from a time on."""
        self.settle(at)
        self.now += by

    def settle(self, at: float) -> None:
        """Count the time up to now."""
        if at > self._since:
            self._seconds[self.now] = self._seconds.get(self.now, 0.0) + at - self._since
            self._since = at

    def begin(self, at: float) -> None:
        """Forget all before a time."""
        self._seconds, self._since = {}, at

    def summary(self) -> tuple[float, float]:
        """Mean and 95th percentile over the time that has been counted."""
        if not self._seconds:
            return float(self.now), float(self.now)
        values = np.array(sorted(self._seconds))
        seconds = np.array([self._seconds[value] for value in values])
        reached = np.cumsum(seconds) / seconds.sum()
        return float(values @ seconds / seconds.sum()), float(values[np.searchsorted(reached, 0.95 - 1e-12)])


@dataclass(frozen=True, slots=True)
class Course:
    """How a simulated run went.

    Attributes:
        time_s: from the first opening to the last verdict.
        calls_per_s: once the start is over and while there are cases left to open; None when there was no such time.
        in_flight, open_debates: mean and 95th percentile, over that time, or over the whole run without it.
    """

    time_s: float
    calls_per_s: float | None
    in_flight: tuple[float, float]
    open_debates: tuple[float, float]


def simulate(programme: Programme, order: Sequence[int], scenario: Scenario, *, warm_up: int | None = None) -> Course:
    """Hold debates, as the arena and the limiter would.

    Args:
        programme: the debates.
        order: which of them are held, one after another.
        scenario: the bounds.
        warm_up: how many are opened before the start counts as over; None to count it.
    """
    return _Run(programme, order, scenario, warm_up).course()


class _Run:
    def __init__(self, programme: Programme, order: Sequence[int], scenario: Scenario, warm_up: int | None) -> None:
        self._parts, self._order = programme.parts, order
        self._endpoints = [Endpoint(scenario) for _ in range(programme.models)]
        self._wakes = [_NEVER] * programme.models
        self._places = max(1, round(scenario.max_open / scenario.shrunk))
        self._cpu_s = 0.0 if scenario.cores is None else scenario.cpu_s * scenario.shrunk / scenario.cores
        self._cpu_free = 0.0
        self._events: list[tuple[float, int, int, int, int]] = []
        self._number = self._opened = self._started = 0
        self._waits: list[list[int]] = []
        self._left: list[int] = []
        self._in_flight, self._open = Level(), Level()
        self._warm_up = warm_up
        self._steady: list[tuple[float, int]] = []
        self._frozen = False

    def course(self) -> Course:
        for _ in range(min(self._places, len(self._order))):
            self._open_next(0.0)
        now = 0.0
        while self._events:
            now, _, kind, place, call = heapq.heappop(self._events)
            if kind == _ENDED:
                self._end(now, place, call)
            elif kind == _READY:
                number = self._parts[self._order[place]].model[call]
                endpoint = self._endpoints[number]
                endpoint.wait((place, call))
                if len(endpoint.waiting) == 1:  # one that waited before still cannot start
                    self._start_waiting(now, number)
            elif kind == _CLOSED:
                self._close(now)
            elif self._wakes[call] <= now:
                self._wakes[call] = _NEVER
                self._start_waiting(now, call)
        if not self._frozen:
            self._settle(now)
        rate = None
        if self._frozen and len(self._steady) == 2:
            (began, before), (ended, after) = self._steady
            rate = (after - before) / (ended - began) if ended > began and after > before else None
        return Course(now, rate, self._in_flight.summary(), self._open.summary())

    def _push(self, at: float, kind: int, place: int, call: int) -> None:
        self._number += 1
        heapq.heappush(self._events, (at, self._number, kind, place, call))

    def _open_next(self, now: float) -> None:
        place = self._opened
        self._opened += 1
        part = self._parts[self._order[place]]
        self._waits.append(part.waits.copy())
        self._left.append(len(part.model))
        if not self._frozen:
            self._open.change(now, 1)
        self._note_steady(now)
        if not part.model:
            self._push(now + part.closing_s, _CLOSED, place, 0)
        for call in part.first:
            self._push(now + part.gap_s[call], _READY, place, call)

    def _note_steady(self, now: float) -> None:
        """Where the start is over, and where the last debate has been opened."""
        if self._warm_up is None:
            return
        if self._opened == self._warm_up and not self._steady:
            self._steady.append((now, self._started))
            self._in_flight.begin(now)
            self._open.begin(now)
        elif self._opened == len(self._order) and len(self._steady) == 1:
            self._steady.append((now, self._started))
            self._settle(now)
            self._frozen = True

    def _settle(self, now: float) -> None:
        self._in_flight.settle(now)
        self._open.settle(now)

    def _start_waiting(self, now: float, number: int) -> None:
        endpoint = self._endpoints[number]
        while endpoint.waiting:
            place, call = endpoint.waiting[0]
            part = self._parts[self._order[place]]
            if not endpoint.admits(now, part.requests[call], part.reserved[call]):
                break
            del endpoint.waiting[0]
            self._started += 1
            if not self._frozen:
                self._in_flight.change(now, 1)
            self._push(now + part.busy_s[call], _ENDED, place, call)
        if endpoint.wake_at < self._wakes[number]:
            self._wakes[number] = endpoint.wake_at
            self._push(endpoint.wake_at, _WAKE, 0, number)

    def _end(self, now: float, place: int, call: int) -> None:
        part: Part = self._parts[self._order[place]]
        number = part.model[call]
        self._endpoints[number].end(now, part.busy_s[call], part.reserved[call], part.used[call])
        if not self._frozen:
            self._in_flight.change(now, -1)
        self._cpu_free = done = max(self._cpu_free, now) + self._cpu_s
        waits = self._waits[place]
        for freed in part.frees[call]:
            waits[freed] -= 1
            if not waits[freed]:
                self._push(done + part.gap_s[freed], _READY, place, freed)
        self._left[place] -= 1
        if not self._left[place]:
            self._waits[place] = []
            self._push(done + part.closing_s, _CLOSED, place, 0)
        if self._endpoints[number].waiting and not self._endpoints[number].until_woken:
            self._start_waiting(now, number)

    def _close(self, now: float) -> None:
        if not self._frozen:
            self._open.change(now, -1)
        if self._opened < len(self._order):
            self._open_next(now)
