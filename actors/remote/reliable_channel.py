"""What an arena and a moderator actor exchange, made safe against calls that are lost, late, or come twice."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import msgspec

from moot.actors.debate.moderator import Assignment, DebateOutcome, Moderator, ModeratorReport


class AssignmentBatch(msgspec.Struct, frozen=True):
    """Assignments, and which outcomes have arrived.

    Attributes:
        number: of the last handover that had assignments, rising: those of one that was overtaken by another were
            handed over again since.
        life: of the moderator that the outcomes came from; empty before the first.
        received: how many of its outcomes have arrived.
    """

    number: int
    incarnation: str
    received: int
    assignments: list[Assignment] = []


class OutcomeBatch(msgspec.Struct, frozen=True):
    """Outcomes of one life of a moderator.

    Attributes:
        life: names it.
        first: number of the first outcome, counted from the beginning of that life.
        outcomes: from there on.
    """

    incarnation: str
    first: int
    outcomes: list[DebateOutcome] = []


class ReliableChannelServer:
    """A moderator's end: keeps each outcome until the arena has it.

    Args:
        moderator: holds the debates.
    """

    def __init__(self, moderator: Moderator) -> None:
        self._moderator = moderator
        self._incarnation = uuid4().hex
        self._latest = self._confirmed = 0
        self._kept: list[DebateOutcome] = []

    async def exchange(self, handover: AssignmentBatch, *, wait: bool) -> OutcomeBatch:
        """See `Moderator.exchange`."""
        if handover.incarnation == self._incarnation and handover.received > self._confirmed:
            del self._kept[: handover.received - self._confirmed]
            self._confirmed = handover.received
        report = await self._moderator.exchange(self._new(handover), wait=wait and not self._kept)
        self._kept += report.done
        return OutcomeBatch(self._incarnation, self._confirmed, list(self._kept))

    def _new(self, handover: AssignmentBatch) -> Sequence[Assignment]:
        """The assignments, but for those of a late handover and of debates that have ended already."""
        if not handover.assignments or handover.number <= self._latest:
            return ()
        self._latest = handover.number
        ended = {(outcome.case_id, outcome.attempt) for outcome in self._kept}
        return [each for each in handover.assignments if (each.case.id, each.attempt) not in ended]


class ReliableChannelClient:
    """The arena's end: numbers what it hands over, and takes each outcome once. Assignments are handed over one call
    after the other; calls without any may go beside them."""

    def __init__(self) -> None:
        self._number = self._received = 0
        self._incarnation = ""

    def next_batch(self, assignments: Sequence[Assignment]) -> AssignmentBatch:
        """The next one."""
        self._number += bool(assignments)
        return AssignmentBatch(self._number, self._incarnation, self._received, list(assignments))

    def accept(self, returned: OutcomeBatch) -> ModeratorReport:
        """What of it is new."""
        if returned.incarnation != self._incarnation:
            self._incarnation, self._received = returned.incarnation, 0
        known = max(0, self._received - returned.first)
        new = returned.outcomes[known:]
        self._received = returned.first + known + len(new)
        return ModeratorReport(new)
