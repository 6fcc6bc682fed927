"""Fake engine without actors: moderator handles and a record client that tests control."""

from __future__ import annotations

from collections.abc import Sequence

from moot.actors.debate import engine
from moot.actors.debate.engine import ModeratorLost
from moot.actors.debate.moderator import Assignment, AssignmentOutcome, ModeratorReport
from moot.actors.record.debate_result import DebateEnd, DebateResult
from moot.actors.record.progress import Counts, StreamedEvent
from moot.actors.record.signals import Signals
from moot.protocols.case import Case, LabelledCase


class FakeModeratorHandle:
    """Moderator that finishes all its debates at an exchange with `wait`, and is lost at exchange number `lost_at`."""

    def __init__(self, lost_at: int = -1) -> None:
        self.open: list[Assignment] = []
        self.most_open = 0
        self.waits: list[bool] = []
        self.held: list[str] = []
        self._lost_at = lost_at

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        self.waits.append(wait)
        if len(self.waits) - 1 == self._lost_at:
            self.open.clear()
            raise ModeratorLost("moderator")
        self.open += assignments
        self.most_open = max(self.most_open, len(self.open))
        if not wait:
            return ModeratorReport()
        done = [AssignmentOutcome(each.case.id, each.attempt, "finished") for each in self.open]
        self.held += [outcome.case_id for outcome in done]
        self.open.clear()
        return ModeratorReport(done)

    async def cancel(self, keys: Sequence[tuple[str, int]]) -> None:
        raise AssertionError("nobody asked for it")

    async def drain(self, seconds: float) -> None:
        raise AssertionError("nobody asked for it")


class FakeRecordClient:
    """Record client that stores which cases are registered."""

    def __init__(self) -> None:
        self.registered: set[str] = set()
        self.ends: list[DebateEnd] = []

    async def register(self, cases: Sequence[LabelledCase]) -> None:
        self.registered |= {labelled.case.id for labelled in cases}

    def end(self, ends: Sequence[DebateEnd]) -> None:
        self.ends += ends
        self.registered -= {end.case_id for end in ends}

    async def counts(self) -> Counts:
        return Counts()

    async def events(self) -> list[StreamedEvent]:
        return []

    async def results(self, case_ids: Sequence[str]) -> dict[str, DebateResult]:
        return {}

    async def signals(self) -> Signals:
        return Signals()

    async def close(self, *, compact: bool) -> None: ...


class FakeRuntime:
    """Runtime of fake moderators."""

    def __init__(self, moderators: Sequence[engine.ModeratorHandle], max_open: int) -> None:
        self.moderators = moderators
        self.kept = FakeRecordClient()
        self.writers: engine.WriterPool = self.kept
        self.max_open = max_open

    async def limiter_state(self) -> None: ...

    async def start(self) -> None: ...

    async def stop(self, *, compact: bool = True) -> None: ...


def _cases(count: int) -> list[LabelledCase]:
    return [LabelledCase(Case(id=f"c{i}", question="?"), i, None) for i in range(count)]
