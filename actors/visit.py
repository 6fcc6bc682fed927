"""A case that is being debated for somebody, and how that may end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from moot.actors.moderator import Assignment
from moot.actors.record.closing import Ended
from moot.actors.record.schema import CaseKey
from moot.protocols.case import LabelledCase
from moot.protocols.errors import MootError


class NotHeld(MootError):
    """A debate that was put aside without a verdict: its case was withdrawn, or the run was closed or has stopped.

    What is on record of it is not paid for again when the case is brought another time.
    """


class RunBroken(NotHeld):
    """A debate that was put aside because the run cannot go on: nothing can be trusted to be kept any more."""


@dataclass(frozen=True)
class Told:
    """How a debate ended, and whether that was on record already."""

    ended: Ended
    reused: bool


class Visit:
    """A case that is being debated for somebody. Made in the event loop of whoever waits.

    Attributes:
        assignment: what a moderator is handed.
        seat: the number of the moderator's seat.
        content: hash of the case's content.
        told: how it ended; `NotHeld` when it was put aside.
    """

    def __init__(self, labelled: LabelledCase, assignment: Assignment, seat: int) -> None:
        self.labelled, self.assignment, self.seat = labelled, assignment, seat
        self.content = labelled.case.content_hash()
        self.told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self.told.add_done_callback(_seen)

    @property
    def key(self) -> CaseKey:
        """Which debate."""
        return (self.assignment.case.id, self.assignment.attempt)

    def end(self, how: Told | NotHeld) -> None:
        """Tell whoever waits; what ended first counts."""
        if self.told.done():
            return
        if isinstance(how, NotHeld):
            self.told.set_exception(how)
        else:
            self.told.set_result(how)


def _seen(told: asyncio.Future[Told]) -> None:
    """Nobody may be waiting any more: an end without a verdict is no error of theirs."""
    if not told.cancelled():
        told.exception()
