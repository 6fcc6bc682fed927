"""Reader of one debate of a run in progress: its events, each once, encoded for a page."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.follow import Added
from moot.actors.record.progress import StreamedEvent, replies_as_events, verdict_event
from moot.actors.record.schema import CANCELLED, RESUMED
from moot.deploy.service.sse import encode_event

_ENDS = ("verdict", CANCELLED)
_MOST_EVENTS = 5_000
"""Most events that a reader may lag behind; beyond that it reads them from the record again."""


class _Seen(NamedTuple):
    """Identity of an event of a debate."""

    attempt: int
    kind: str
    path: str
    at: float


class DebateReader:
    """Reader of one debate.

    Args:
        case_id: the debate's case.

    Attributes:
        events: those that were not taken yet.
        is_behind: whether events were dropped, because it was too slow.
    """

    def __init__(self, case_id: str) -> None:
        self.case_id = case_id
        self.events: deque[StreamedEvent] = deque()
        self.is_behind = False
        self._seen: set[_Seen] = set()
        self._attempt, self._has_ended = 0, False

    def add(self, added: Added) -> None:
        """Add the debate's events of added rows."""
        for event in _events_of(added, self.case_id):
            self._add(event)

    def _add(self, event: StreamedEvent) -> None:
        if len(self.events) >= _MOST_EVENTS:
            self.is_behind = True
        else:
            self.events.append(event)

    def next_written(self) -> bytes:
        """Events since the last call, encoded; each once."""
        written = bytearray()
        while self.events:
            event = self.events.popleft()
            place = _Seen(event.attempt, event.kind, event.path, event.at)
            if place in self._seen:
                continue
            self._seen.add(place)
            if event.attempt > self._attempt:
                self._attempt, self._has_ended = event.attempt, False
            if event.attempt == self._attempt:
                self._has_ended = (self._has_ended or event.kind in _ENDS) and event.kind != RESUMED
            data = {name: getattr(event, name) for name in ("kind", "path", "attempt", "at", "data")}
            written += encode_event("note", msgspec.json.encode(data))
        return bytes(written)

    @property
    def has_ended(self) -> bool:
        """Whether the latest attempt has its verdict, or was cancelled and not resumed."""
        return self._has_ended


def _events_of(added: Added, case_id: str) -> list[StreamedEvent]:
    """The added events of a debate."""
    if added.table == "cases":
        return []
    rows: pa.Table = added.rows.filter(pc.equal(added.rows["case_id"], case_id))
    if not rows.num_rows:
        return []
    if added.table == "turns":
        return replies_as_events(rows) if "text" in rows.column_names else []
    if added.table == "verdicts":
        return [verdict_event(row) for row in rows.to_pylist()]
    return [
        StreamedEvent(case_id, row["attempt"], row["kind"], row["path"], msgspec.json.decode(row["data"]), row["at"])
        for row in rows.to_pylist()
    ]
