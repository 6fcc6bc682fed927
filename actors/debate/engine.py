"""What the dispatcher asks of an engine: its moderators, its record writers, and their life cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moot.actors.debate.moderator import Assignment, ModeratorReport
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.schema import CaseKey
from moot.actors.record.signals import Signals
from moot.protocols.case import LabelledCase


class ModeratorLost(Exception):
    """A moderator died with its open debates; it is back, and knows nothing of them."""


class ModeratorHandle(Protocol):
    """A moderator as the dispatcher sees it."""

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        """Hand over assignments and learn what is new; see `Moderator.exchange`. Raises `ModeratorLost`."""
        ...

    async def cancel(self, keys: Sequence[CaseKey]) -> None:
        """Put these debates aside; see `Moderator.cancel`."""
        ...

    async def drain(self, seconds: float) -> None:
        """Let asks under way finish, then put every debate aside."""
        ...


class WriterPool(Protocol):
    """The record's writers as the dispatcher sees them."""

    async def register(self, cases: Sequence[LabelledCase]) -> None:
        """Make cases known, gold labels included, before they are debated."""
        ...

    def forget(self, case_ids: Sequence[str]) -> None:
        """These cases are debated no more: they need not be registered again if a writer is lost, and without a
        verdict they need not be kept in mind."""
        ...

    async def counts(self) -> Counts:
        """Running totals over all writers."""
        ...

    async def events(self) -> list[StreamedEvent]:
        """Events since the last call; an empty list says that all have come."""
        ...

    async def results(self, case_ids: Sequence[str]) -> dict[str, DebateResult]:
        """How these cases ended, as far as they have."""
        ...

    async def signals(self) -> Signals:
        """Signals of all judged replies so far, over all writers."""
        ...

    async def close(self, *, compact: bool) -> None:
        """Flush, and turn the journal into Parquet if asked to."""
        ...


class Runtime(Protocol):
    """An engine with its actors: where moderators and writers live."""

    moderators: Sequence[ModeratorHandle]
    writers: WriterPool
    max_open: int

    async def start(self) -> None:
        """Bring everything up; raises a `UserError` when that cannot be."""
        ...

    async def stop(self, *, compact: bool = True) -> None:
        """Flush the record, turn it into Parquet if asked to, and take everything down."""
        ...
