"""Event streams: the live events of open debates, for any number of followers, from the first event to the end."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from zlib import crc32

import msgspec

from moot.actors.record.progress import StreamedEvent, size_of
from moot.actors.record.schema import BOOKKEEPING_EVENTS

KEPT_ENDED, KEPT_CHARACTERS = 1000, 32 * 2**20
"""Streams of ended debates that are kept for late followers, and the total size of their replies in characters."""


class EventStream:
    """Events of one debate so far.

    Args:
        earlier_than: Unix time before which the record may have further events of the debate; None when it has none.

    Attributes:
        size: characters of the replies among them.
    """

    def __init__(self, earlier_than: float | None = None) -> None:
        self.earlier_than = earlier_than
        self.events: list[StreamedEvent] = []
        self.size = self._before = 0
        self.ended = False
        self._known: set[tuple[int, str, str, int]] = set()
        self._news = asyncio.Event()

    def add(self, event: StreamedEvent) -> None:
        """Add an event, unless it is a duplicate: a restarted writer may receive and deliver events again that it had
        not written."""
        words = (event.attempt, event.kind, event.path, crc32(msgspec.json.encode(event.data)))
        if words in self._known and event.kind not in BOOKKEEPING_EVENTS:
            return
        self._known.add(words)
        self.events.append(event)
        self.size += size_of(event)
        self._notify()

    def resume_from(self, earlier: EventStream) -> None:
        """Prepend the events of an earlier stream of the debate."""
        for event in earlier.events:
            self.add(event)
        self._before = len(self.events)

    @property
    def has_events(self) -> bool:
        """Whether this stream has events beyond those of an earlier one."""
        return len(self.events) > self._before

    def end(self) -> None:
        """End the stream: no more events will follow."""
        self.ended = True
        self._notify()

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def follow(self) -> AsyncIterator[StreamedEvent]:
        """Iterate over all events from the first; ends with the debate. Several followers may read it.

        Unlike the record, the stream may lack events: those of the last moments before a writer died, and the oldest
        beyond a writer's bound.
        """
        seen = 0
        while True:
            while seen < len(self.events):
                yield self.events[seen]
                seen += 1
            if self.ended:
                return
            await self._news.wait()


class EventStreams:
    """Event streams of open debates and of those that ended last, by case."""

    def __init__(self) -> None:
        self._open: dict[str, EventStream] = {}
        self._ended: OrderedDict[str, EventStream] = OrderedDict()
        self._size = 0

    def open(self, case_id: str, earlier_than: float | None = None) -> None:
        """Open the stream of a debate, see `EventStream`. A resumed one starts with the kept events, because the record
        may lack the last of them."""
        if (kept := self._ended.pop(case_id, None)) is not None:
            self._size -= kept.size
        earlier = self._open.get(case_id) or kept
        self._open[case_id] = event_stream = EventStream(earlier_than if earlier is None else earlier.earlier_than)
        if earlier is not None:
            earlier.end()
            event_stream.resume_from(earlier)

    def add(self, events: Iterable[StreamedEvent]) -> None:
        """Add events to the streams of their debates, in order of time; events without an open stream are dropped. Each
        is added once; some may be missing, see `EventStream.follow`."""
        for event in sorted(events, key=lambda each: each.at):
            if (event_stream := self._open.get(event.case_id)) is not None:
                event_stream.add(event)

    def close(self, case_id: str) -> None:
        """Close the stream of a debate that has ended, after its last event."""
        event_stream = self._open.pop(case_id, None)
        if event_stream is None:
            return
        event_stream.end()
        self._ended[case_id] = event_stream
        self._size += event_stream.size
        while len(self._ended) > KEPT_ENDED or (self._size > KEPT_CHARACTERS and self._ended):
            self._size -= self._ended.popitem(last=False)[1].size

    def close_all(self) -> None:
        """Close every open stream."""
        for case_id in list(self._open):
            self.close(case_id)

    def of(self, case_id: str) -> EventStream | None:
        """Stream of a case; None unless it is open or ended recently."""
        return self._open.get(case_id) or self._ended.get(case_id)
