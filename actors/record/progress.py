"""Progress of a run: running counts and the stream of its events, from the record writer or from the record."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.usage_totals import UsageTotals
from moot.actors.record.folder import RunFolder
from moot.actors.record.tables import read_table
from moot.protocols.events import lacks_values

_KEPT_EVENTS, _KEPT_CHARACTERS = 20_000, 32 * 2**20


class Counts(msgspec.Struct):
    """Totals so far; `merge` adds the counts of several writers.

    Attributes:
        finished: debates with a verdict that did not fail.
        failed: debates recorded as failed.
        scored: verdicts with a gold label to compare.
        correct: scored verdicts that agree with the gold label.
        skipped: debates that the gate skipped.
        untested: debates whose gate could not make a test, because a value was unknown.
        rounds: debate rounds over all verdicts.
        paid: usage of paid replies.
        reused: usage of replies reused from another run.
    """

    finished: int = 0
    failed: int = 0
    scored: int = 0
    correct: int = 0
    skipped: int = 0
    rounds: int = 0
    paid: UsageTotals = msgspec.field(default_factory=UsageTotals)
    reused: UsageTotals = msgspec.field(default_factory=UsageTotals)
    untested: int = 0

    def merge(self, other: Counts) -> Counts:
        """Sum of both counts."""
        return Counts(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


REPLY = "reply"
"""Event kind of a reply, which the record has as a row of `turns`."""


class StreamedEvent(msgspec.Struct, frozen=True):
    """Event of a running debate, for subscribers."""

    case_id: str
    attempt: int
    kind: str
    path: str
    data: dict[str, Any]
    at: float


def size_of(event: StreamedEvent) -> int:
    """Characters of the reply in an event; 0 for any other event."""
    return len(event.data.get("text") or "") if event.kind == REPLY else 0


class Progress:
    """Counts and recent events of one writer."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._events: deque[StreamedEvent] = deque()
        self._seen = self._size = 0

    def count_reply(self, prompt: int | None, completion: int | None, *, reused: bool) -> None:
        """Count an appended reply."""
        (self.counts.reused if reused else self.counts.paid).add(prompt, completion)

    def count_verdict(self, how: str, failed: bool, correct: bool | None, rounds: int) -> None:
        """Count an appended verdict."""
        if failed:
            self.counts.failed += 1
            return
        self.counts.finished += 1
        self.counts.scored += correct is not None
        self.counts.correct += bool(correct)
        self.counts.skipped += how == "skipped"
        self.counts.rounds += rounds

    def add_events(self, events: Sequence[StreamedEvent]) -> None:
        """Stream appended events."""
        self.counts.untested += sum(lacks_values(event.kind, event.data) for event in events)
        self._events.extend(events)
        self._seen += len(events)
        self._size += sum(map(size_of, events))
        while self._events and (len(self._events) > _KEPT_EVENTS or self._size > _KEPT_CHARACTERS):
            self._size -= size_of(self._events.popleft())

    def events_since(self, cursor: int, limit: int = 2000) -> tuple[int, list[StreamedEvent]]:
        """Events after `cursor` (0 at first) and the next cursor; events that left the window are skipped."""
        first = self._seen - len(self._events)
        start = max(cursor, first) - first
        found = [self._events[i] for i in range(start, min(start + limit, len(self._events)))]
        return first + start + len(found), found


_REPLY_FIELDS = ("role", "model", "text", "answer", "outcome", "failure", "error", "prompt_tokens", "completion_tokens")
_OF_VERDICTS = ("answer", "how", "confidence", "correct", "failure", "at")
REPLY_COLUMNS = ["case_id", "attempt", "path", *_REPLY_FIELDS, "latency_s", "reused_from", "at"]
"""Columns for the event of a reply."""


def replies_as_events(rows: pa.RecordBatch | pa.Table) -> list[StreamedEvent]:
    """Events of replies, at the times of their arrival.

    Args:
        rows: of `replies` or of `turns`.
    """
    return [_as_event(row) for row in rows.select(REPLY_COLUMNS).to_pylist()]


def _as_event(row: dict[str, Any]) -> StreamedEvent:
    data = {name: row[name] for name in _REPLY_FIELDS} | {"reused": row["reused_from"] is not None}
    came_at = (row["at"] or 0.0) + (row["latency_s"] or 0.0)
    return StreamedEvent(row["case_id"], row["attempt"], REPLY, row["path"], data, came_at)


def verdict_event(row: Mapping[str, Any]) -> StreamedEvent:
    """Event of a row of `verdicts`."""
    data = {name: row[name] for name in ("answer", "how", "confidence", "correct")}
    data |= {"failure": row["failure"]} if row["failure"] else {}
    return StreamedEvent(row["case_id"], row["attempt"], "verdict", "verdict", data, row["at"])


def recorded_events(folder: RunFolder, case_id: str, before: float = float("inf")) -> list[StreamedEvent]:
    """Recorded events of a case before a time (Unix seconds), in order of time.

    Raises:
        RecordError: the record cannot be read.
    """
    if not folder.exists():
        return []
    mine = pc.field("case_id") == case_id
    noted = read_table(folder, "events", only=mine).to_pylist()
    events = [
        StreamedEvent(case_id, row["attempt"], row["kind"], row["path"], msgspec.json.decode(row["data"]), row["at"])
        for row in noted
    ]
    events += replies_as_events(read_table(folder, "turns", REPLY_COLUMNS, only=mine))
    verdicts = read_table(folder, "verdicts", ["case_id", "attempt", *_OF_VERDICTS], only=mine)
    events += map(verdict_event, verdicts.to_pylist())
    return sorted((event for event in events if event.at < before), key=lambda event: event.at)
