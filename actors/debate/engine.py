"""Engine interface for the dispatchers: moderators, record writers, and their life cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moot.actors.debate.moderator import Assignment, ModeratorReport
from moot.actors.limits.envelopes import LimiterState
from moot.actors.record.debate_result import DebateEnd, DebateResult
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.schema import CaseKey
from moot.actors.record.signals import Signals
from moot.protocols.case import LabelledCase


class ModeratorLost(Exception):
    """A moderator died with its open debates; it was restarted without them."""


class ModeratorHandle(Protocol):
    """Handle of a moderator for a dispatcher."""

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        """Send assignments and receive outcomes; see `Moderator.exchange`. Raises `ModeratorLost`."""
        ...

    async def cancel(self, keys: Sequence[CaseKey]) -> None:
        """Cancel these debates; see `Moderator.cancel`."""
        ...

    async def drain(self, seconds: float) -> None:
        """Let asks in flight finish, then cancel every debate."""
        ...


class WriterPool(Protocol):
    """Record writers of a run, as a dispatcher sees them."""

    async def register(self, cases: Sequence[LabelledCase]) -> None:
        """Register cases, gold labels included, before they are debated."""
        ...

    def end(self, ends: Sequence[DebateEnd]) -> None:
        """End debates, whichever way, once their moderators have ended them; never waits.

        Their cases are not registered again if a writer is lost, their writers keep nothing of them in memory, and the
        record says which were cancelled.
        """
        ...

    async def counts(self) -> Counts:
        """Running totals over all writers."""
        ...

    async def events(self) -> list[StreamedEvent]:
        """Events since the last call; an empty list means that there are no more."""
        ...

    async def results(self, case_ids: Sequence[str]) -> dict[str, DebateResult]:
        """Results of these cases, as far as they exist."""
        ...

    async def signals(self) -> Signals:
        """Signals so far, over all writers; the same object while they do not change."""
        ...

    async def close(self, *, compact: bool) -> None:
        """Flush, and compact the journal to Parquet if requested."""
        ...


class Runtime(Protocol):
    """Runtime of an engine: its moderators and writers."""

    moderators: Sequence[ModeratorHandle]
    writers: WriterPool
    max_open: int

    async def limiter_state(self) -> LimiterState | None:
        """State of the limiter and of the budgets; None when nothing is limited, or the limiter does not answer."""
        ...

    async def start(self) -> None:
        """Start everything. Raises a `UserError` when that is not possible."""
        ...

    async def stop(self, *, compact: bool = True) -> None:
        """Flush the record, compact it to Parquet if requested, and stop everything."""
        ...
