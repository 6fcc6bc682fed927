"""Pending decisions: debates that wait for a person during the run, and resume with the decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import structlog

from moot.actors.debate.moderator import Assignment, AssignmentOutcome
from moot.protocols.errors import unknown_name
from moot.protocols.messages import Decision, Form

_log = structlog.get_logger(__name__)


class Consultation(msgspec.Struct, frozen=True):
    """Form that a person is consultation to answer, and the step that waits for it."""

    case_id: str
    attempt: int
    path: str
    form: Form


class Person(Protocol):
    """Person who answers forms during the run."""

    async def decide(self, consultation: Consultation) -> Decision | None:
        """Answer a form, without a deadline; None leaves the debate waiting in the record.

        Several forms may be pending at once. Pending ones are cancelled when the run ends.
        """
        ...


class PendingDecisions:
    """Debates of one moderator that wait for a person; other debates continue.

    Args:
        person: None when the run is unattended.
        leave: receives case id and attempt of each debate that is left without a decision.

    Attributes:
        undecided: ids of the cases without a decision: they wait in the record.
    """

    def __init__(self, person: Person | None, leave: Callable[[str, int], None]) -> None:
        self._person, self._on_leave = person, leave
        self._asking: dict[asyncio.Task[Decision | None], tuple[Assignment, Consultation]] = {}
        self.undecided: list[str] = []

    @property
    def busy(self) -> bool:
        """Whether a form is pending, or has a decision that `pop_decided` has not returned yet."""
        return bool(self._asking)

    def add(self, assignment: Assignment, outcome: AssignmentOutcome) -> None:
        """Add a parked debate and ask the person."""
        if self._person is None or outcome.form is None:
            self._leave(outcome.case_id, outcome.attempt)
            return
        consultation = Consultation(outcome.case_id, outcome.attempt, outcome.path, outcome.form)
        task = asyncio.ensure_future(self._person.decide(consultation))
        self._asking[task] = (assignment, consultation)

    def pop_decided(self) -> list[Assignment]:
        """Remove and return the debates with a decision, which resume from the journal.

        An action that the form does not offer is refused: the debate waits in the record, and a warning is logged.
        """
        ready: list[Assignment] = []
        for task in [task for task in self._asking if task.done()]:
            assignment, consultation = self._asking.pop(task)
            decision = None if task.cancelled() else task.result()
            if decision is not None and decision.action not in consultation.form.actions:
                refused = str(unknown_name("action", decision.action, consultation.form.actions))
                _log.warning("a decision is refused; its debate waits", case=consultation.case_id, why=refused)
                decision = None
            if decision is None:
                self._leave(consultation.case_id, consultation.attempt)
                continue
            decided = {consultation.path: decision}
            ready.append(Assignment(assignment.case, assignment.attempt, True, assignment.invalid, decided))
        return ready

    def _leave(self, case_id: str, attempt: int) -> None:
        self.undecided.append(case_id)
        self._on_leave(case_id, attempt)

    async def wait(self, within_s: float | None = None) -> None:
        """Wait for a decision, at most `within_s` seconds; None for as long as it takes."""
        waiting: Sequence[asyncio.Task[Decision | None]] = list(self._asking)
        await asyncio.wait(waiting, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)

    def cancel(self) -> None:
        """Cancel every pending form: debates without a decision wait in the record, as do later ones."""
        self._person = None
        for task in self._asking:
            task.cancel()

    async def close(self) -> None:
        """Cancel every pending form and wait for its end."""
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        self._asking.clear()
