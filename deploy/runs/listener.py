"""Listener interface of a session, implemented by progress output, streams, live pages and interactive moderation."""

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
        """Called with the number of embedded chunks of the run's documents, periodically while the library is built,
        before the engine starts."""

    def began(self, total: int | None, done: int) -> None:
        """Called when the engine starts, with the number of cases (None if unknown) and of finished ones."""

    def counts(self, counts: Counts) -> None:
        """Called periodically with totals of the whole run; for a retried case, of the last attempt's verdict."""

    def events(self, events: Sequence[StreamedEvent]) -> None:
        """Called with the events since the last call."""

    def limits(self, state: LimiterState) -> None:
        """Called about once a second with the limiter's state; never in a run without limits."""

    def waiting(self, forms: int) -> None:
        """Called when the number of forms that wait for a person changes; never in a run without a `Person`."""

    def signals(self, signals: Signals) -> None:
        """Called with the signals of the run's judged replies, about once a second while they change, and once at the
        end; never in a run without any."""

    def ended(self) -> None:
        """Called last, when the session ended."""
