"""What happened in a debate, replies and all, as whoever follows it is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.folder import RunFolder
from moot.actors.record.progress import REPLY, StreamedEvent
from moot.actors.record.tables import read_table

_TOLD = ("role", "model", "text", "answer", "outcome", "failure", "error", "prompt_tokens", "completion_tokens")
_OF_VERDICTS = ("answer", "how", "confidence", "correct", "failure", "at")
_COLUMNS = ["case_id", "attempt", "path", *_TOLD, "latency_s", "reused_from", "at"]


def replies_as_events(rows: pa.RecordBatch | pa.Table) -> list[StreamedEvent]:
    """Each reply as an event at the time when it came.

    Args:
        rows: of `replies` or of `turns`.
    """
    return [_as_event(row) for row in rows.select(_COLUMNS).to_pylist()]


def _as_event(row: dict[str, Any]) -> StreamedEvent:
    told = {name: row[name] for name in _TOLD} | {"reused": row["reused_from"] is not None}
    came_at = (row["at"] or 0.0) + (row["latency_s"] or 0.0)
    return StreamedEvent(row["case_id"], row["attempt"], REPLY, row["path"], told, came_at)


def verdict_event(
    case_id: str,
    attempt: int,
    answer: str | None,
    how: str,
    confidence: float | None,
    correct: bool | None,
    failure: str | None,
    at: float,
) -> StreamedEvent:
    """A verdict as an event; the record has it as a row of `verdicts`."""
    told = {"answer": answer, "how": how, "confidence": confidence, "correct": correct}
    told |= {"failure": failure} if failure else {}
    return StreamedEvent(case_id, attempt, "verdict", "verdict", told, at)


def chronicle(folder: RunFolder, case_id: str, before: float = float("inf")) -> list[StreamedEvent]:
    """What the record has of a case that happened before a time (Unix seconds), in the order of time.

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
    events += replies_as_events(read_table(folder, "turns", _COLUMNS, only=mine))
    verdicts = read_table(folder, "verdicts", ["case_id", "attempt", *_OF_VERDICTS], only=mine)
    events += [verdict_event(**row) for row in verdicts.to_pylist()]
    return sorted((event for event in events if event.at < before), key=lambda event: event.at)
