"""The desk at which debates wait for a person who is there while the run lives, and from which they go on."""

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
    """What a debate asks a person, and where in it."""

    case_id: str
    attempt: int
    path: str
    form: Form


class Person(Protocol):
    """Somebody who answers forms while the run goes on."""

    async def decide(self, consultation: Consultation) -> Decision | None:
        """Answer a form, in one's own time; None leaves the debate waiting, for another day.

        Several debates may ask at once. It is cancelled when the run ends.
        """
        ...


class PendingDecisions:
    """Debates of one moderator that wait for a person, who holds up no other debate.

    Args:
        person: None when nobody is there.

    Attributes:
        left: ids of the cases that nobody answered: they wait in the record.
    """

    def __init__(self, person: Person | None) -> None:
        self._person = person
        self._asking: dict[asyncio.Task[Decision | None], tuple[Assignment, Consultation]] = {}
        self.undecided: list[str] = []

    @property
    def busy(self) -> bool:
        """Whether the person is being asked, or has answered something that `take` has not given yet."""
        return bool(self._asking)

    @property
    def case_ids(self) -> set[str]:
        """The cases that the person is asked about."""
        return {asked.case_id for _, asked in self._asking.values()}

    def add(self, assignment: Assignment, outcome: AssignmentOutcome) -> None:
        """A debate waits with a form."""
        if self._person is None or outcome.form is None:
            self.undecided.append(outcome.case_id)
            return
        asked = Consultation(outcome.case_id, outcome.attempt, outcome.path, outcome.form)
        task = asyncio.ensure_future(self._person.decide(asked))
        self._asking[task] = (assignment, asked)

    def pop_decided(self) -> list[Assignment]:
        """Debates with a decision: they go on from the journal.

        An action that the form does not have decides nothing: the debate waits in the record, and a warning says so.
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
        """Ask nobody any more: what has no decision yet waits in the record, as what comes later does."""
        self._person = None
        for task in self._asking:
            task.cancel()

    async def close(self) -> None:
        """Ask no longer."""
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        self._asking.clear()
