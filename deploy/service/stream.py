"""Server-sent events of a debate: past events, live events, then its end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress

import msgspec
import structlog

from moot.actors.record.progress import StreamedEvent
from moot.deploy.service.errors import body
from moot.deploy.service.jobs import Job
from moot.deploy.service.service import Service
from moot.deploy.service.sse import HEARTBEAT_S, MOST_BYTES, chunks_of, encode_event, event_name

_log = structlog.get_logger(__name__)
_GATHER_S = 0.05
_AGAIN_MS = 1000
_RECORD = "record"


class _EventBuffer:
    """Buffer between an event source and its reader, which takes events in batches and with a deadline.

    Attributes:
        error: why the source failed; None at a regular end.
    """

    def __init__(self, events: AsyncIterator[StreamedEvent]) -> None:
        self._events = events
        self.error: Exception | None = None
        self._taken: list[StreamedEvent] = []
        self._news = asyncio.Event()
        self._pumping = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            async for event in self._events:
                self._taken.append(event)
                self._news.set()
        except Exception as error:
            self.error = error
        finally:
            self._news.set()

    async def next(self, within_s: float) -> list[StreamedEvent] | None:
        """Events since the last call, empty after a timeout; None at the end."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), within_s)
        self._news.clear()
        found, self._taken = self._taken, []
        if self._pumping.done():
            self._news.set()
            return found or None
        return found

    async def close(self) -> None:
        self._pumping.cancel()
        await asyncio.gather(self._pumping, return_exceptions=True)


def resume_offset(event_stream: str, last_event_id: str) -> int:
    """Number of events that a reader already has, by its last event id; 0 for an id of another stream.

    >>> resume_offset("ab12", "ab12-7"), resume_offset("ab12", "cd34-7"), resume_offset("ab12", "nonsense")
    (8, 0, 0)
    """
    known, _, number = last_event_id.rpartition("-")
    return (
        int(number) + 1 if known == event_stream and number.isascii() and number.isdigit() and len(number) < 10 else 0
    )


async def event_stream(service: Service, job: Job, last_event_id: str, longest_s: float) -> AsyncGenerator[bytes, None]:
    """Chunks of server-sent events: those that the reader lacks, then live ones, then `end` with the request's state;
    `error` instead when they cannot all be read. A stream ends after `longest_s`; its reader reconnects by itself.
    """
    yield f"retry: {_AGAIN_MS}\n\n".encode()
    live = None if service.closed else service.run.events(job.id) if job.stream_id != _RECORD else None
    if live is None:
        event_stream, pump = _RECORD, _EventBuffer(_recorded(service, job.id))
    else:
        event_stream, pump = job.stream_id, _EventBuffer(live)
    skip, seen = resume_offset(event_stream, last_event_id), 0
    loop = asyncio.get_running_loop()
    deadline = loop.time() + longest_s
    try:
        while (found := await pump.next(min(HEARTBEAT_S, max(0.0, deadline - loop.time())))) is not None:
            if not found:
                yield b": still here\n\n"
            unsent = deque(enumerate(found, seen))
            seen += len(found)
            del found  # frees what was sent, however slowly the reader reads
            while unsent:
                for chunk in chunks_of(_next_written(event_stream, unsent, skip)):
                    yield chunk
                if loop.time() >= deadline:
                    break
            if loop.time() >= deadline:
                yield b": come again\n\n"
                return
            await asyncio.sleep(_GATHER_S)
        if pump.error is not None:
            _log.error("a stream failed", kind=service.kind, id=job.id, error=repr(pump.error)[:500])
            yield b"event: error\ndata: %s\n\n" % body("broken_off", "not all events could be read: reconnect")
            return
        await job.done.wait()
        for chunk in chunks_of(
            encode_event("end", service.state(job).model_dump_json().encode(), f"{event_stream}-{seen}")
        ):
            yield chunk
    finally:
        await pump.close()


def _next_written(event_stream: str, unsent: deque[tuple[int, StreamedEvent]], skip: int) -> bytes:
    """Encode the next unsent events, whole ones up to about the size of a chunk; events before `skip` are dropped."""
    written = bytearray()
    while unsent and len(written) < MOST_BYTES:
        number, event = unsent.popleft()
        if number < skip:
            continue
        data = {"kind": event.kind, "path": event.path, "attempt": event.attempt, "at": event.at, "data": event.data}
        written += encode_event(event_name(event.kind), msgspec.json.encode(data), f"{event_stream}-{number}")
    return bytes(written)


async def _recorded(service: Service, case_id: str) -> AsyncIterator[StreamedEvent]:
    """Recorded events of a debate that ended earlier."""
    events = deque(await service.run.recorded_events(case_id))
    while events:
        yield events.popleft()
