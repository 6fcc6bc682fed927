"""Engine whose debates end when a test calls `finish`, behind a queue dispatcher."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fake_runtime import FakeRecordClient
from fake_runtime import FakeRuntime as HandlesOnly

from moot.actors.debate.engine import ModeratorLost
from moot.actors.debate.moderator import Assignment, AssignmentOutcome, ModeratorReport
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.dispatch.queue_dispatcher import QueueDispatcher
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.schema import CaseKey
from moot.protocols.case import Case, LabelledCase


class ManualModeratorHandle:
    """Moderator that keeps its assignments until `finish`; `lose` fails the pending exchange, and the next one with
    assignments."""

    def __init__(self) -> None:
        self.open: dict[str, Assignment] = {}
        self.given: list[Assignment] = []
        self.withdrawn: list[str] = []
        self.gone: Exception | None = None
        self._done: list[AssignmentOutcome] = []
        self._news = asyncio.Event()
        self._incarnation, self._fails_next = 0, False
        self.slow: asyncio.Event | None = None
        self.under_way = False

    def finish(self, *case_ids: str, status: str = "finished", why: str = "") -> None:
        for case_id in case_ids or list(self.open):
            at = self.open.pop(case_id).attempt
            if status == "stopped":
                self._done.append(AssignmentOutcome(case_id, at, "stopped", why))
                continue
            self._done.append(AssignmentOutcome(case_id, at, "finished", result=ended(case_id, at)))
        self._news.set()

    def lose(self) -> None:
        self.open.clear()
        self._incarnation, self._fails_next = self._incarnation + 1, True
        self._news.set()

    async def exchange(self, assignments: Sequence[Assignment], *, wait: bool) -> ModeratorReport:
        incarnation = self._incarnation
        if wait and not self._done and self.gone is None:
            self._news.clear()
            await self._news.wait()
        elif not wait and self.slow is not None:
            self.under_way = True
            await self.slow.wait()
        if self.gone is not None:
            raise self.gone
        await self._lost_in(incarnation, wait=wait)
        self.given += assignments
        self.open |= {each.case.id: each for each in assignments}
        done, self._done = self._done, []
        return ModeratorReport(done)

    async def _lost_in(self, incarnation: int, *, wait: bool) -> None:
        """Raise `ModeratorLost` if the moderator has died since."""
        if incarnation != self._incarnation or (self._fails_next and not wait):
            self._fails_next = self._fails_next and wait
            raise ModeratorLost("moderator")

    async def cancel(self, keys: Sequence[tuple[str, int]]) -> None:
        for case_id, _ in keys:
            self.withdrawn.append(case_id)
            self.open.pop(case_id, None)

    async def drain(self, seconds: float) -> None:
        self.open.clear()


class ManualRuntime(HandlesOnly):
    """Runtime with a number of moderators of one kind."""

    def __init__(self, moderators: int, kind: type[ManualModeratorHandle] = ManualModeratorHandle) -> None:
        self.places = [kind() for _ in range(moderators)]
        super().__init__(self.places, max_open=10)


def ended(case_id: str, attempt: int = 0) -> DebateResult:
    return DebateResult(case_id=case_id, attempt=attempt, answer="Yes", how="told")


def case(number: int) -> LabelledCase:
    return LabelledCase(Case(id=f"q{number}", question=f"is {number} even"), number)


@asynccontextmanager
async def open_dispatcher(
    runtime: ManualRuntime, finished: Mapping[CaseKey, bool] | None = None, **changes: Any
) -> AsyncIterator[QueueDispatcher]:
    found = QueueDispatcher(runtime, CompletedCases(finished or {}, {}), **changes)
    found.start()
    try:
        async with asyncio.timeout(20):
            yield found
    finally:
        await found.close(0.0)


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - a condition of a test
        await asyncio.sleep(0)


async def until_open(runtime: ManualRuntime, count: int) -> None:
    await until(lambda: sum(len(moderator.open) for moderator in runtime.places) >= count)


class FinishedRecordClient(FakeRecordClient):
    """Record client with a verdict for every case; `fails` is raised by the next read, and `slow` delays reads."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.fails: Exception | None = None
        self.slow: asyncio.Event | None = None

    async def results(self, case_ids: Sequence[str]) -> dict[str, DebateResult]:
        self.asked.append(list(case_ids))
        if self.slow is not None:
            await self.slow.wait()
        if self.fails is not None:
            error, self.fails = self.fails, None
            raise error
        return {each: ended(each) for each in case_ids}


@asynccontextmanager
async def finished() -> AsyncIterator[tuple[QueueDispatcher, FinishedRecordClient]]:
    """Queue dispatcher of an engine whose record has a verdict for every case."""
    runtime, record = ManualRuntime(1), FinishedRecordClient()
    runtime.writers = record
    async with open_dispatcher(runtime, {(f"q{number}", 0): False for number in range(9)}) as found:
        yield found, record
