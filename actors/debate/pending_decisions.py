"""Pending decisions: debates that wait for a person during the run, and resume with the decision."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec
import structlog

from moot.actors.debate.moderator import Assignment, AssignmentOutcome
from moot.protocols.errors import unknown_name
from moot.protocols.messages import Decision, Form

_log = structlog.get_logger(__name__)


class Consultation(msgspec.Struct, frozen=True):
    """A form that a debate asks a person to answer, and its place in the debate."""

    case_id: str
    attempt: int
    path: str
    form: Form


class Person(Protocol):
    """A person who answers forms during the run."""

    async def decide(self, consultation: Consultation) -> Decision | None:
        """Answer a form, without a deadline; None leaves the debate waiting in the record.

        Several debates may ask at once. It is cancelled when the run ends.
        """
        ...


class PendingDecisions:
    """Debates of one moderator that wait for a person; no other debate waits for them.

    Args:
        person: None when the run is unattended.

    Attributes:
        undecided: ids of the cases that nobody answered: they wait in the record.
    """

    def __init__(self, person: Person | None) -> None:
        self._person = person
        self._asking: dict[asyncio.Task[Decision | None], tuple[Assignment, Consultation]] = {}
        self.undecided: list[str] = []

    @property
    def busy(self) -> bool:
        """Whether the person is being asked, or has answered something that `pop_decided` has not returned yet."""
        return bool(self._asking)

    @property
    def case_ids(self) -> set[str]:
        """The cases that the person is asked about."""
        return {asked.case_id for _, asked in self._asking.values()}

    def add(self, assignment: Assignment, outcome: AssignmentOutcome) -> None:
        """Ask the person on behalf of a parked debate."""
        if self._person is None or outcome.form is None:
            self.undecided.append(outcome.case_id)
            return
        asked = Consultation(outcome.case_id, outcome.attempt, outcome.path, outcome.form)
        task = asyncio.ensure_future(self._person.decide(asked))
        self._asking[task] = (assignment, asked)

    def pop_decided(self) -> list[Assignment]:
        """Remove and return the debates with a decision, which resume from the journal.

        An action that the form does not have is refused: the debate waits in the record, and a warning says so.
        """
        ready: list[Assignment] = []
        for task in [task for task in self._asking if task.done()]:
            assignment, asked = self._asking.pop(task)
            decision = None if task.cancelled() else task.result()
            if decision is not None and decision.action not in asked.form.actions:
                refused = str(unknown_name("action", decision.action, asked.form.actions))
                _log.warning("a decision is refused; its debate waits", case=asked.case_id, why=refused)
                decision = None
            if decision is None:
                self.undecided.append(asked.case_id)
                continue
            decided = {asked.path: decision}
            ready.append(Assignment(assignment.case, assignment.attempt, True, assignment.invalid, decided))
        return ready

    async def wait(self, within_s: float | None = None) -> None:
        """Wait for a decision, at most so many seconds; None for as long as it takes."""
        waiting: Sequence[asyncio.Task[Decision | None]] = list(self._asking)
        await asyncio.wait(waiting, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)

    def cancel(self) -> None:
        """Cancel every question: debates without a decision wait in the record, as later ones do."""
        self._person = None
        for task in self._asking:
            task.cancel()

    async def close(self) -> None:
        """Cancel every question and wait for its end."""
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        self._asking.clear()
