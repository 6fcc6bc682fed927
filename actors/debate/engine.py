"""Engine interface for the dispatchers: moderators, record writers, and their life cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moot.actors.debate.moderator import Assignment, ModeratorReport
from moot.actors.limits.envelopes import LimiterState
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.schema import CaseKey
from moot.actors.record.signals import Signals
from moot.protocols.case import LabelledCase


class ModeratorLost(Exception):
    """A moderator died with its open debates; it was restarted and has none of them."""


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
    """The record's writers, for a dispatcher."""

    async def register(self, cases: Sequence[LabelledCase]) -> None:
        """Register cases, gold labels included, before they are debated."""
        ...

    def forget(self, case_ids: Sequence[str]) -> None:
        """Forget cases that are debated no more: they need not be registered again if a writer is lost, and those
        without a verdict may be evicted."""
        ...

    async def counts(self) -> Counts:
        """Running totals over all writers."""
        ...

    async def events(self) -> list[StreamedEvent]:
        """Events since the last call; an empty list says that all have come."""
        ...

    async def results(self, case_ids: Sequence[str]) -> dict[str, DebateResult]:
        """Results of these cases, as far as they have any."""
        ...

    async def signals(self) -> Signals:
        """Signals of all judged replies so far, over all writers."""
        ...

    async def close(self, *, compact: bool) -> None:
        """Flush, and turn the journal into Parquet if asked to."""
        ...


class Runtime(Protocol):
    """Runtime of an engine: its moderators and writers."""

    moderators: Sequence[ModeratorHandle]
    writers: WriterPool
    max_open: int

    async def limiter_state(self) -> LimiterState | None:
        """What the limiter grants, and what is left of the budgets; None when nothing is limited, or the limiter does
        not answer now."""
        ...

    async def start(self) -> None:
        """Start everything; raises a `UserError` when that is not possible."""
        ...

    async def stop(self, *, compact: bool = True) -> None:
        """Flush the record, turn it into Parquet if asked to, and stop everything."""
        ...
