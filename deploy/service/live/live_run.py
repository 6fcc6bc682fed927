"""Run in progress, followed in its record while pages are open: updates for pages, a few each second."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import structlog

from moot.actors.record.folder import RunFolder
from moot.actors.record.follow import Added, RecordFollower
from moot.actors.record.progress import StreamedEvent, recorded_events, replies_as_events, verdict_event
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.results.record.run_info import RunInfo
from moot.deploy.results.report.charts import chart_data
from moot.deploy.runs.recorded_run import last_session, recorded_status
from moot.deploy.service.live.charts import live_charts
from moot.deploy.service.live.figures import READ_OF_JOURNAL, RunningFigures
from moot.deploy.service.sse import HEARTBEAT_S, encode_event
from moot.protocols.errors import MootError

_log = structlog.get_logger(__name__)

UPDATE_S = 0.25
"""Least seconds between two reads of the record, and updates of the figures."""

CHARTS_S = 1.0
"""Least seconds between updates of the charts."""

IDLE_S = 60.0
"""Seconds that a run is followed after the last page has closed, for a page that is reloaded."""

LAST_READ_S = 20.0
"""Most seconds for the last read of a run that has ended, and its last figures."""

_LIVE_CHECK_S = 2.0
_MOST_EVENTS = 5_000
"""Most events that a reader may lag behind; beyond that it reads them from the record again."""


class _Seen(NamedTuple):
    """Identity of an event of a debate."""

    attempt: int
    kind: str
    path: str
    at: float


class _Reader:
    """Reader of one debate."""

    def __init__(self, case_id: str) -> None:
        self.case_id = case_id
        self.events: deque[StreamedEvent] = deque()
        self.is_behind = False
        self._seen: set[_Seen] = set()
        self._attempt, self._has_verdict = 0, False

    def add(self, event: StreamedEvent) -> None:
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
                self._attempt, self._has_verdict = event.attempt, False
            self._has_verdict |= event.kind == "verdict" and event.attempt == self._attempt
            data = {name: getattr(event, name) for name in ("kind", "path", "attempt", "at", "data")}
            written += encode_event("note", msgspec.json.encode(data))
        return bytes(written)

    @property
    def has_ended(self) -> bool:
        """Whether the verdict of the latest attempt has arrived."""
        return self._has_verdict


class LiveRun:
    """Run that is followed, by one task, from `open` to `close`.

    Args:
        info: of the run.
        is_live: whether a process works on the run.
        beside: further values of the figures, such as those that only the run's own process knows.
        hint: advice for the end of the run, where this process ends with it.

    Attributes:
        lookers: number of pages that follow it.
    """

    def __init__(
        self,
        info: RunInfo,
        is_live: Callable[[], bool],
        beside: Callable[[], Awaitable[Mapping[str, Any]]],
        hint: str = "",
    ) -> None:
        self._folder, self._is_live, self._beside, self._hint = RunFolder(info.path), is_live, beside, hint
        self._running = RunningFigures(info)
        self._follower = RecordFollower(self._folder, self._running.columns, READ_OF_JOURNAL)
        self._readers: list[_Reader] = []
        self._news = asyncio.Condition()
        self._version = 0
        self._figures = self._charts = b""
        self._charts_version, self._charts_at = 0, 0.0
        self._closing = asyncio.Event()
        self._ended, self._reason, self._how = False, "", dict[str, str]()
        self._task: asyncio.Task[None] | None = None
        self.lookers, self._idle_since = 0, time.monotonic()

    def open(self, ended: Callable[[], object]) -> None:
        """Begin to follow.

        Args:
            ended: called when nothing more comes and the record's files are closed.
        """
        self._task = asyncio.create_task(self._follow())
        self._task.add_done_callback(lambda _: ended())

    async def close(self) -> None:
        """Stop following; open pages get the last figures of the record, and the end of the stream."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=LAST_READ_S)
        await self._end()

    async def _follow(self) -> None:
        checked_at = 0.0
        try:
            while not self._closing.is_set():
                began = time.monotonic()
                is_live = True
                if began - checked_at > _LIVE_CHECK_S:
                    checked_at, is_live = began, await asyncio.to_thread(self._is_live)
                if await asyncio.to_thread(self._read) or not self._version or began - self._charts_at > _LIVE_CHECK_S:
                    await self._tell(began)
                is_idle = not self.lookers and began - self._idle_since > IDLE_S
                if is_idle or not is_live:
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), max(UPDATE_S, time.monotonic() - began))
            await asyncio.to_thread(self._read)  # what was written before the run was seen to have ended
            await self._tell(time.monotonic(), is_last=True)
            await self._end()
        except Exception as error:
            _log.warning("a run is not followed any more", run=str(self._folder.path), error=repr(error))
            await self._end(str(error) if isinstance(error, MootError) else "an unexpected error, see the log")
        finally:
            self._follower.close()

    def _read(self) -> bool:
        """Read what was added; returns whether there was anything."""
        found = False
        for added in self._follower.read():
            found = True
            self._running.add(added)
            for reader in list(self._readers):
                for event in _events_of(added, reader.case_id):
                    reader.add(event)
        return found

    async def _tell(self, now: float, *, is_last: bool = False) -> None:
        beside = await self._beside()
        self._figures = await asyncio.to_thread(self._figures_now, beside)
        if is_last or now - self._charts_at >= CHARTS_S:
            self._charts_at = now
            self._charts = await asyncio.to_thread(self._charts_now)
            self._charts_version += 1
        async with self._news:
            self._version += 1
            self._news.notify_all()

    def _figures_now(self, beside: Mapping[str, Any]) -> bytes:
        figures = self._running.figures().model_dump()
        return msgspec.json.encode({**figures, "debates": self._running.debates.shown(time.time()), **beside})

    def _charts_now(self) -> bytes:
        charts = [{**chart_data(chart), "note": chart.note} for chart in live_charts(self._running)]
        return msgspec.json.encode(charts)

    async def _end(self, reason: str = "") -> None:
        if self._ended:
            return
        how = await asyncio.to_thread(self._how_it_ended)
        async with self._news:
            self._ended, self._reason, self._how = True, reason, how
            self._news.notify_all()

    def _how_it_ended(self) -> dict[str, str]:
        """`RunStatus` of the run, and what stopped it."""
        try:
            settings = read_run_yaml(self._folder)
            stopped_by = str(last_session(settings).get("stopped_by") or "")
            return {"status": recorded_status(self._folder, settings), "stopped_by": stopped_by}
        except MootError:
            return {"status": "unknown", "stopped_by": ""}

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will follow."""
        return self._ended

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Context of a page that follows the run."""
        self.lookers += 1
        try:
            yield
        finally:
            self.lookers -= 1
            self._idle_since = time.monotonic()

    async def updates(self) -> AsyncGenerator[bytes, None]:
        """Server-sent events: `figures`, `charts` when they have changed, and `end` with the run's status when it has
        ended, or with a reason when it cannot be followed any more. A reader that is slow gets the latest ones."""
        seen = seen_charts = 0
        yield b"retry: 1000\n\n"
        while True:
            if seen < self._version:
                seen = self._version
                yield encode_event("figures", self._figures)
                if seen_charts < self._charts_version:
                    seen_charts = self._charts_version
                    yield encode_event("charts", self._charts)
            if self._ended:
                end = {"hint": self._hint, "reason": self._reason, **self._how}
                yield encode_event("end", msgspec.json.encode(end))
                return
            if not await self._wait(partial(self._is_newer, seen)):
                yield b": still here\n\n"

    def _is_newer(self, version: int) -> bool:
        return version < self._version

    async def _wait(self, holds: Callable[[], bool], at_most_s: float = HEARTBEAT_S) -> bool:
        """Wait until something holds or the run has ended; False when neither is so in time."""
        try:
            async with asyncio.timeout(at_most_s), self._news:
                await self._news.wait_for(lambda: self._ended or holds())
        except TimeoutError:
            return False
        return True

    async def debate(self, case_id: str) -> AsyncGenerator[bytes, None]:
        """Server-sent events of a debate: a `note` for each that is recorded, then for each that is added; `end` when
        it has its verdict, or with a reason when the run cannot be followed any more."""
        reader = _Reader(case_id)
        self._readers.append(reader)
        try:
            yield b"retry: 1000\n\n"
            try:
                recorded = await asyncio.to_thread(recorded_events, self._folder, case_id)
            except MootError as error:
                yield encode_event("end", msgspec.json.encode({"reason": str(error)}))
                return
            reader.events.extendleft(reversed(recorded))
            while not reader.is_behind:
                if written := reader.next_written():
                    yield written
                if reader.has_ended or (self._ended and not reader.events):
                    yield encode_event("end", msgspec.json.encode({"reason": self._reason}))
                    return
                if not await self._wait(lambda: bool(reader.events)):
                    yield b": still here\n\n"
        finally:
            self._readers.remove(reader)


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
