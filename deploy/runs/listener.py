"""Who follows a run while it goes on: a progress line, a stream, a moderator at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.signals import Signals


class Listener:
    """Follows a session; called on the session's event loop. This one does nothing.

    Attributes:
        wants_events: whether `events` and `signals` are called.
    """

    wants_events = False

    def indexed(self, done: int, total: int) -> None:
        """So many chunks of the run's documents are embedded; now and then while the library is built, before the
        engine starts."""

    def began(self, total: int | None, done: int) -> None:
        """The engine starts; `total` cases (None: unknown), of which `done` need nothing more."""

    def counts(self, counts: Counts) -> None:
        """Totals of the whole run, now and then; of a case that got another attempt, the verdict of the last one."""

    def events(self, events: Sequence[StreamedEvent]) -> None:
        """What happened since the last call."""

    def signals(self, signals: Signals) -> None:
        """Signals of the whole run's judged replies: about once a second while they change, and once at the end; never
        in a run without any."""

    def ended(self) -> None:
        """No further call comes."""
