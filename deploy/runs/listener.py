"""Listener interface of a run: implemented by progress lines, streams and the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from moot.actors.limits.envelopes import LimiterState
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.signals import Signals


class Listener:
    """Callbacks of a session, on its event loop. This base class does nothing.

    Attributes:
        wants_events: whether `events` and `signals` are called.
        wants_limits: whether `limits` is called.
    """

    wants_events = False
    wants_limits = False

    def indexed(self, done: int, total: int) -> None:
        """Number of embedded chunks of the run's documents; periodically while the library is built, before the engine
        starts."""

    def began(self, total: int | None, done: int) -> None:
        """The engine starts; `total` cases (None: unknown), `done` of them finished."""

    def counts(self, counts: Counts) -> None:
        """Periodic totals of the whole run; for a retried case, the last attempt's verdict."""

    def events(self, events: Sequence[StreamedEvent]) -> None:
        """Events since the last call."""

    def limits(self, state: LimiterState) -> None:
        """State of the limiter, about once a second; never in a run without limits."""

    def waiting(self, forms: int) -> None:
        """Number of forms that wait for a person, when it changes; never in a run whose forms nobody answers
        meanwhile."""

    def signals(self, signals: Signals) -> None:
        """Signals of the run's judged replies: about once a second while they change, and once at the end; never in a
        run without any."""

    def ended(self) -> None:
        """The session ended; the last call."""
