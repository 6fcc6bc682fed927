"""Reliable channel: sequence-numbered, acknowledged batches between the dispatcher and a moderator actor.

Calls between them may be lost, late or duplicated; each assignment and each outcome still arrives once.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import msgspec

from moot.actors.debate.moderator import Assignment, AssignmentOutcome, Moderator, ModeratorReport


class AssignmentBatch(msgspec.Struct, frozen=True):
    """Batch of assignments, with an acknowledgement of received outcomes.

    Attributes:
        number: of the last batch with assignments, increasing: assignments of an overtaken batch have been sent again.
        incarnation: of the moderator that sent the outcomes; empty before the first.
        received: number of its outcomes received.
    """

    number: int
    incarnation: str
    received: int
    assignments: list[Assignment] = []


class OutcomeBatch(msgspec.Struct, frozen=True):
    """Batch of outcomes from one incarnation of a moderator.

    Attributes:
        incarnation: of the moderator.
        first: sequence number of the first outcome, counted from the start of the incarnation.
        outcomes: from that number on.
    """

    incarnation: str
    first: int
    outcomes: list[AssignmentOutcome] = []


class ReliableChannelServer:
    """Moderator's end of the channel: keeps each outcome until the dispatcher has acknowledged it.

    Args:
        moderator: runs the debates.
    """

    def __init__(self, moderator: Moderator) -> None:
        self._moderator = moderator
        self._incarnation = uuid4().hex
        self._latest = self._acknowledged = 0
        self._kept: list[AssignmentOutcome] = []

    async def exchange(self, batch: AssignmentBatch, *, wait: bool) -> OutcomeBatch:
        """See `Moderator.exchange`."""
        if batch.incarnation == self._incarnation and batch.received > self._acknowledged:
            del self._kept[: batch.received - self._acknowledged]
            self._acknowledged = batch.received
        report = await self._moderator.exchange(self._new(batch), wait=wait and not self._kept)
        self._kept += report.done
        return OutcomeBatch(self._incarnation, self._acknowledged, list(self._kept))

    def _new(self, batch: AssignmentBatch) -> Sequence[Assignment]:
        """The new assignments: those of a late batch and those of ended debates are skipped."""
        if not batch.assignments or batch.number <= self._latest:
            return ()
        self._latest = batch.number
        ended = {(outcome.case_id, outcome.attempt) for outcome in self._kept}
        return [each for each in batch.assignments if (each.case.id, each.attempt) not in ended]


class ReliableChannelClient:
    """Dispatcher's end of the channel: numbers the batches and delivers each outcome once.

    Batches with assignments are sent one after the other; calls without any may be in flight beside them.
    """

    def __init__(self) -> None:
        self._number = self._received = 0
        self._incarnation = ""

    def next_batch(self, assignments: Sequence[Assignment]) -> AssignmentBatch:
        """Next batch to send."""
        self._number += bool(assignments)
        return AssignmentBatch(self._number, self._incarnation, self._received, list(assignments))

    def accept(self, returned: OutcomeBatch) -> ModeratorReport:
        """Process a returned batch; returns its new outcomes."""
        if returned.incarnation != self._incarnation:
            self._incarnation, self._received = returned.incarnation, 0
        known = max(0, self._received - returned.first)
        new = returned.outcomes[known:]
        self._received = returned.first + known + len(new)
        return ModeratorReport(new)
