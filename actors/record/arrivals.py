"""What has come to a writer of the record: tells a row that is new from one that comes again, late, or for nobody.

Rows are sent again when a call was lost on its way; a debate that is replayed notes the same again; and an ask that was
paid for twice gives a second reply. The first reply of a path stands, unless a later one names it as superseded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from zlib import crc32

from moot.actors.record.columns import sorted_json
from moot.actors.record.known_endings import Used
from moot.actors.record.schema import ABANDONED, BOOKKEEPING_EVENTS, CaseKey
from moot.protocols.messages import Event

_NOTED = 20_000
"""Notes that are kept in mind to tell those that come twice; rows that are sent again come within seconds."""


class OpenDebate:
    """What is kept in mind of a debate without verdict.

    Attributes:
        reply_ids: of the replies that stand, by path.
        events: digest of what was noted last, by kind and path.
        arrived: set when something that a verdict may wait for has come.
        used: what its replies used.
        late: of a debate that was forgotten, the replies that have come since: path, id, and what it supersedes.
    """

    __slots__ = ("arrived", "events", "late", "reply_ids", "used")

    def __init__(self) -> None:
        self.late: list[tuple[str, str, str | None]] = []
        self.reply_ids: dict[str, str] = {}
        self.events: dict[tuple[str, str], int] = {}
        self.arrived = asyncio.Event()
        self.used = Used()


class Arrivals:
    """The debates of one writer, as far as their rows have come."""

    def __init__(self) -> None:
        self._open: dict[CaseKey, OpenDebate] = {}
        self._finished: set[CaseKey] = set()
        self._forgotten: set[CaseKey] = set()
        self._noted: dict[tuple[str, int, str, str, float], None] = {}

    def recover(
        self,
        finished: set[CaseKey],
        replies: Iterable[tuple[str, int, str, str]],
        events: Iterable[tuple[str, int, str, str, int]],
    ) -> None:
        """Know what earlier lives of the writer have recorded; see `recovery.State`."""
        self._finished = finished
        for case_id, attempt, path, reply_id in replies:
            debate = self.debate((case_id, attempt))
            debate.reply_ids[path] = reply_id
            debate.used.known = False
        for case_id, attempt, kind, path, digest in events:
            self.debate((case_id, attempt)).events[kind, path] = digest

    def debate(self, key: CaseKey) -> OpenDebate:
        """What is known of a debate without verdict; a new one begins."""
        return self._open.get(key) or self._open.setdefault(key, OpenDebate())

    def known(self, key: CaseKey) -> OpenDebate | None:
        """The same, without beginning one."""
        return self._open.get(key)

    def unfinished(self) -> list[CaseKey]:
        """The debates without verdict that are in mind."""
        return list(self._open)

    def forget(self, key: CaseKey) -> None:
        """Put a debate without verdict out of mind; of what comes late of it nothing is told apart any more."""
        if self._open.pop(key, None) is not None:
            self._forgotten.add(key)

    def is_forgotten(self, key: CaseKey) -> bool:
        """Whether a debate is out of mind, so that it must be brought back before it goes on."""
        return key in self._forgotten

    def bring_back(self, key: CaseKey, reply_ids: dict[str, str], events: dict[tuple[str, str], int]) -> None:
        """Know again what is recorded of a forgotten debate, and what has come late of it."""
        self._forgotten.discard(key)
        debate = self.debate(key)
        debate.reply_ids, debate.events = reply_ids, events | debate.events
        debate.used.known = False
        late, debate.late = debate.late, []
        for reply in late:
            self.reply(key, *reply)

    def has_ended(self, key: CaseKey) -> bool:
        """Whether a debate has its verdict."""
        return key in self._finished

    def so_far(self, keys: Sequence[CaseKey]) -> tuple[int, int]:
        """How many of these debates have their verdict, and how many replies of the others stand."""
        replies = (len(debate.reply_ids) for key in keys if (debate := self._open.get(key)) is not None)
        return sum(key in self._finished for key in keys), sum(replies)

    def end(self, key: CaseKey) -> None:
        """A debate has its verdict: whatever comes of it from now on is late."""
        self._finished.add(key)
        self._open.pop(key, None)
        self._forgotten.discard(key)

    def reply(self, key: CaseKey, path: str, reply_id: str, supersedes: str | None) -> bool:
        """Take a reply in, unless it has come before, another one stands in its place, or its debate has ended."""
        if key in self._finished:
            return False
        debate = self.debate(key)
        known = debate.reply_ids.get(path)
        if known is not None and supersedes != known:
            return False
        debate.reply_ids[path] = reply_id
        if key in self._forgotten:
            debate.late.append((path, reply_id, supersedes))
        debate.arrived.set()
        return True

    def event(self, key: CaseKey, event: Event, at: float) -> bool:
        """Whether an event is to be written: it says something new of a debate without verdict. What an abandoned call
        may have cost counts even after that."""
        note = (*key, event.kind, event.path, at)
        if key in self._finished:
            return event.kind == ABANDONED and not self._came_before(note)
        debate = self.debate(key)
        if event.kind in BOOKKEEPING_EVENTS:
            return not self._came_before(note)
        # A replay notes the same again; one that had to pay anew may see other signals: the last ones count.
        known = debate.events.get((event.kind, event.path))
        debate.events[event.kind, event.path] = digest = crc32(sorted_json(event.data).encode())
        return known != digest

    def _came_before(self, note: tuple[str, int, str, str, float]) -> bool:
        """Whether a note of an attempt to pay was delivered before: the same at the same time, as readers tell it."""
        known = note in self._noted
        self._noted[note] = None
        if len(self._noted) > _NOTED:
            del self._noted[next(iter(self._noted))]
        return known
