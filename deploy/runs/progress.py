"""Progress of a run on stderr: a bar on a terminal, elsewhere a line when the figures change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from moot.actors.limits.envelopes import LimiterState
from moot.actors.record.progress import Counts
from moot.deploy.results.text import cases
from moot.deploy.runs.listener import Listener

LINE_EVERY_S = 5.0
_UNKNOWN = "-"
_STALL_S, _STALL_GAPS = 10.0, 3.0
"""The rate is unknown after this many seconds without a finished case, and this many times the longest gap so far."""


def progress_listener(*, quiet: bool = False, gated: bool = True) -> Listener:
    """Progress listener for stderr: a bar on a terminal, else lines; one that prints nothing if `quiet`.

    Args:
        gated: whether a gate decides which cases are debated.
    """
    if quiet:
        return Listener()
    return BarListener(Console(stderr=True), gated=gated) if sys.stderr.isatty() else LineListener(gated=gated)


class ProgressRate:
    """Rate of finished cases of a session, and the estimated remaining time.

    Args:
        total: number of cases of the run; None if unknown.
        done: number of finished cases at the start of the session.
        clock: monotonic time in seconds.
    """

    def __init__(self, total: int | None, done: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self._before, self._done = total, done, done
        self._clock = clock
        self._started = self._last_increase = clock()
        self._longest_gap_s = 0.0

    def update(self, done: int) -> None:
        """Update the number of finished cases."""
        if done > self._done:
            now = self._clock()
            self._longest_gap_s = max(self._longest_gap_s, now - self._last_increase)
            self._done, self._last_increase = done, now

    def remaining_s(self) -> float | None:
        """Estimated remaining seconds, at the mean rate up to the last finished case.

        None while unknown: before the first case has finished, and if the time since the last one is much longer than
        any gap before it, as when a server hangs.
        """
        if self.total is None or self._done <= self._before:
            return None
        left = max(self.total - self._done, 0)
        if left and self._clock() - self._last_increase > max(_STALL_S, _STALL_GAPS * self._longest_gap_s):
            return None
        return left * (self._last_increase - self._started) / (self._done - self._before)


def figures(counts: Counts, *, gated: bool = True, waiting: int = 0) -> str:
    """Current figures of a run on one line; the skipped share only with a gate, or if any case was skipped.

    Args:
        counts: totals of the run.
        gated: whether a gate decides which cases are debated.
        waiting: number of debates that wait for the person.

    >>> figures(Counts(), gated=False, waiting=2)
    '2 wait for you | accuracy - | 0 tokens'
    >>> from moot.actors.models.usage_totals import UsageTotals
    >>> figures(Counts(finished=9, failed=1, scored=8, correct=6, skipped=3, paid=UsageTotals(12300, 45)))
    'accuracy 75.0 % | skipped 33.3 % | 12,345 tokens | 1 failed'
    """
    parts = [f"{waiting:,} wait{'s' * (waiting == 1)} for you"] if waiting else []
    parts += [f"accuracy {_share(counts.correct, counts.scored)}"]
    if gated or counts.skipped:
        parts.append(f"skipped {_share(counts.skipped, counts.finished)}")
    if counts.untested:
        parts.append(f"gate not tested {counts.untested:,}")
    parts.append(f"{counts.paid.tokens:,} tokens")
    if counts.reused.calls:
        parts.append(f"{counts.reused.tokens:,} reused")
    if counts.failed:
        parts.append(f"{counts.failed:,} failed")
    return " | ".join(parts)


def duration(seconds: float | None) -> str:
    """Duration in seconds as h:mm:ss or m:ss.

    >>> duration(3725.2), duration(9), duration(None)
    ('1:02:05', '0:09', '-')
    """
    if seconds is None:
        return _UNKNOWN
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else _UNKNOWN


class _ProgressListener(Listener):
    """Base class of progress listeners: the rate, the progress of the library, and what a server asks to wait."""

    wants_limits = True

    def __init__(self, print_line: Callable[[str], object], every_s: float, *, gated: bool) -> None:
        self._print, self._every_s, self._gated = print_line, every_s, gated
        self._last = time.monotonic()
        self._library_shown = False
        self._rate = ProgressRate(None, 0)
        self._waiting = 0
        self._asked_wait_s = 0.0
        self._long_waits: dict[str, int] = {}

    def limits(self, state: LimiterState) -> None:
        """See `Listener.limits`; prints each long wait that a server requests, with its message."""
        for each in state.endpoints:
            if each.long_waits > self._long_waits.get(each.endpoint, 0):
                self._print(f"{each.endpoint}: {each.wait_error}")
            self._long_waits[each.endpoint] = each.long_waits
        self._asked_wait_s = max((each.asked_wait_s or 0.0 for each in state.endpoints), default=0.0)

    def waiting(self, forms: int) -> None:
        """See `Listener.waiting`."""
        self._waiting = forms

    def indexed(self, done: int, total: int) -> None:
        """See `Listener.indexed`; prints nothing if it takes less than the interval."""
        if time.monotonic() - self._last >= self._every_s or (self._library_shown and done == total):
            self._last, self._library_shown = time.monotonic(), True
            self._print(f"embedding the documents: {done:,} of {total:,} chunks")

    def began(self, total: int | None, done: int) -> None:
        """See `Listener.began`."""
        self._rate = ProgressRate(total, done)

    def _left(self) -> str:
        remaining_s = self._rate.remaining_s()
        if remaining_s is None and self._asked_wait_s:
            return f"a server asks to wait {duration(self._asked_wait_s)}"
        return f"left {duration(remaining_s)}"


class LineListener(_ProgressListener):
    """A line when the figures have changed, at most one every few seconds, and one at the end."""

    def __init__(self, every_s: float = LINE_EVERY_S, *, gated: bool = True) -> None:
        super().__init__(lambda line: print(line, file=sys.stderr, flush=True), every_s, gated=gated)
        self._latest = Counts()
        self._printed = self._state()

    def began(self, total: int | None, done: int) -> None:
        """See `Listener.began`."""
        super().began(total, done)
        finished = f", {done:,} of them done" if done else ""
        self._print(f"{f'{_UNKNOWN} cases' if total is None else cases(total)}{finished}")

    def counts(self, counts: Counts) -> None:
        """See `Listener.counts`."""
        self._latest = counts
        self._rate.update(counts.finished + counts.failed)
        if time.monotonic() - self._last >= self._every_s:
            self.ended()

    def ended(self) -> None:
        """See `Listener.ended`."""
        if (state := self._state()) == self._printed:
            return
        self._last, self._printed = time.monotonic(), state
        done, shown, _ = state
        of = "" if self._rate.total is None else f"/{self._rate.total:,}"
        self._print(f"{done:,}{of} cases | {shown} | {self._left()}")

    def _state(self) -> tuple[int, str, bool]:
        """What a line says, the remaining time excepted, which changes by itself."""
        counts = self._latest
        shown = figures(counts, gated=self._gated, waiting=self._waiting)
        return counts.finished + counts.failed, shown, self._asked_wait_s > 0.0


class BarListener(_ProgressListener):
    """A progress bar with the current figures.

    Args:
        console: the console of the bar.
        gated: see `progress_listener`.
    """

    def __init__(self, console: Console, *, gated: bool = True) -> None:
        super().__init__(lambda line: console.print(line, markup=False), LINE_EVERY_S, gated=gated)
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.completed:.0f}/{task.fields[total_text]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[figures]}"),
            TextColumn("{task.fields[left]}", style="cyan"),
            console=console,
        )
        self._task: TaskID | None = None

    def began(self, total: int | None, done: int) -> None:
        """See `Listener.began`."""
        super().began(total, done)
        shown: dict[str, Any] = {
            "total_text": "?" if total is None else f"{total:,}",
            "figures": "starting",
            "left": self._left(),
        }
        self._task = self._bar.add_task("", total=total, completed=done, **shown)
        self._bar.start()

    def counts(self, counts: Counts) -> None:
        """See `Listener.counts`."""
        if self._task is not None:
            done = counts.finished + counts.failed
            self._rate.update(done)
            shown = figures(counts, gated=self._gated, waiting=self._waiting)
            self._bar.update(self._task, completed=done, figures=shown, left=self._left())

    def ended(self) -> None:
        """See `Listener.ended`."""
        self._bar.stop()
