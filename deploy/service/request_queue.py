"""Index of the accepted requests: the state of each, in memory, from the changes in an inbox's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from moot.deploy.service.inbox_files import Change, Span

MAX_CANCELLED = 10_000
"""Cancelled requests kept per kind: the most recently cancelled ones."""


class Key(NamedTuple):
    """Kind of a request, and id of its case."""

    kind: str
    id: str


State = Literal["pending", "cancelled", "lost"]
_STATES: dict[str, State] = {"accept": "pending", "cancel": "cancelled", "lose": "lost"}


@dataclass(frozen=True, slots=True)
class Entry:
    """Request that has not ended.

    Attributes:
        change: the change that it is in this state since.
        span: place of its body; None when it has none, or that is lost.
    """

    change: Change
    span: Span | None

    @property
    def state(self) -> State:
        """State of the request; one whose body is missing is lost."""
        state = _STATES[self.change.what]
        return "lost" if self.is_newly_lost else state

    @property
    def is_newly_lost(self) -> bool:
        """Whether its body is missing, and the files do not say so yet."""
        return self.change.what == "accept" and self.span is None


class RequestQueue:
    """State of every request, in the order of the changes.

    Args:
        changes: in their order.

    Attributes:
        entries: requests that have not ended, in the order of their last change.
        pending_bytes: length of the frames of the pending ones.
        lost: number of lost ones by kind.
    """

    def __init__(self, changes: Iterable[tuple[Change, Span | None]] = ()) -> None:
        self.entries: dict[Key, Entry] = {}
        self.pending_bytes = 0
        self.lost: Counter[str] = Counter()
        self._cancelled: dict[str, dict[Key, None]] = {}
        for change, span in changes:
            self.apply(change, span)

    def apply(self, change: Change, span: Span | None) -> None:
        """Apply a change; cancelled requests beyond `MAX_CANCELLED` are forgotten, the oldest first."""
        key = Key(change.kind, change.id)
        self._remove(key)
        if change.what == "end":
            return
        entry = Entry(change, span if change.what == "accept" else None)
        self.entries[key] = entry
        self.pending_bytes += entry.span.length if entry.span else 0
        self.lost[key.kind] += entry.state == "lost"
        if change.what == "cancel":
            cancelled = self._cancelled.setdefault(key.kind, {})
            cancelled[key] = None
            if len(cancelled) > MAX_CANCELLED:
                self._remove(next(iter(cancelled)))

    def _remove(self, key: Key) -> None:
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.lost[key.kind] -= entry.state == "lost"
            self.pending_bytes -= entry.span.length if entry.span else 0
            self._cancelled.get(key.kind, {}).pop(key, None)

    def pending(self, kind: str) -> list[Key]:
        """Pending requests of a kind, oldest first."""
        return [key for key, entry in self.entries.items() if entry.state == "pending" and key.kind == kind]
