"""Run in progress, followed in its record while pages are open: updates for pages, a few each second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import msgspec
import structlog

from moot.actors.record.folder import RunFolder
from moot.actors.record.follow import RecordFollower
from moot.actors.record.progress import recorded_events
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.signal_file import SignalReader
from moot.deploy.results.report.charts import chart_data
from moot.deploy.results.run_info import RunInfo
from moot.deploy.runs.recorded_run import last_session, recorded_status
from moot.deploy.service.live.charts import live_charts
from moot.deploy.service.live.debate_reader import DebateReader
from moot.deploy.service.live.figures import READ_OF_JOURNAL, RunningFigures
from moot.deploy.service.sse import encode_event
from moot.protocols.errors import MootError

_log = structlog.get_logger(__name__)

UPDATE_S = 0.25
"""Least seconds between two reads of the record, and updates of the figures."""

CHARTS_S = 1.0
"""Least seconds between updates of the charts."""

IDLE_S = 60.0
"""Seconds that a run is followed after the last page has closed, for a page that is reloaded."""

HEARTBEAT_S = 5.0
"""Most seconds without an event: a page gives up a server that is silent for four times as long."""

STOP_S = 20.0
"""Most seconds that a read which was told to stop is waited for."""

_LIVE_CHECK_S = 2.0
_HEARTBEAT = encode_event("heartbeat", b"{}")  # no comment: a browser hides comments from its page


class LiveRun:
    """Run that is followed, by one task, from `open` to `close`.

    Args:
        info: of the run.
        is_live: whether a process works on the run.
        beside: further values of the figures, such as those that only the run's own process knows.
        hint: advice for the end of the run, where this process ends with it.

    Attributes:
        viewers: number of pages that follow it.
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
        self._signals = SignalReader(info.path)
        self._readers: list[DebateReader] = []
        self._news = asyncio.Condition()
        self._version = 0
        self._figures = self._charts = b""
        self._charts_version, self._charts_at = 0, 0.0
        self._closing, self._stops_reading = asyncio.Event(), False
        self._session_has_ended = False
        self._ended, self._reason, self._how = False, "", dict[str, str]()
        self._task: asyncio.Task[None] | None = None
        self.viewers, self._idle_since = 0, time.monotonic()

    def open(self, ended: Callable[[], object]) -> None:
        """Begin to follow.

        Args:
            ended: called when nothing more comes and the record's files are closed.
        """
        self._task = asyncio.create_task(self._follow())
        self._task.add_done_callback(lambda _: ended())

    async def close(self, last_read_s: float = 0.0) -> None:
        """Stop following, and end the stream of every page.

        Args:
            last_read_s: most seconds to read the rest of the record, for last figures; the read then stops where it is.
        """
        self._session_has_ended = bool(last_read_s)
        self._closing.set()
        if self._task is None:
            return
        if last_read_s:
            await asyncio.wait([self._task], timeout=last_read_s)
        self._stops_reading = True
        await self._end()
        await asyncio.wait([self._task], timeout=STOP_S)

    async def _follow(self) -> None:
        checked_at, is_live = 0.0, True
        try:
            while is_live and not self._closing.is_set():
                began = time.monotonic()
                if began - checked_at > _LIVE_CHECK_S:
                    checked_at, is_live = began, await asyncio.to_thread(self._is_live)
                await self._refresh()
                if not self.viewers and began - self._idle_since > IDLE_S:
                    self._ended = True  # before anything is awaited: a page that opens now follows the run anew
                    return
                if is_live:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._closing.wait(), max(UPDATE_S, time.monotonic() - began))
            self._session_has_ended |= not is_live
            await self._refresh(is_last=True)  # what was written before the run was seen to have ended
            await self._end()
        except Exception as error:
            _log.warning("a run is not followed any more", run=str(self._folder.path), error=repr(error))
            await self._end(str(error) if isinstance(error, MootError) else "an unexpected error, see the log")
        finally:
            self._follower.close()

    async def _refresh(self, *, is_last: bool = False) -> None:
        """Read what was added; update the figures and, each `CHARTS_S`, the charts."""
        now = time.monotonic()
        has_added = await asyncio.to_thread(self._read)
        is_due = is_last or not self._version or now - self._charts_at > _LIVE_CHECK_S
        if self._stops_reading or not (has_added or is_due):
            return
        self._figures = await asyncio.to_thread(self._figures_now, await self._beside())
        if is_last or now - self._charts_at >= CHARTS_S:
            self._charts_at = now
            self._charts = await asyncio.to_thread(self._charts_now)
            self._charts_version += 1
        async with self._news:
            self._version += 1
            self._news.notify_all()

    def _read(self) -> bool:
        """Read what was added; returns whether there was anything."""
        found = False
        for added in self._follower.read():
            found = True
            self._running.add(added)
            for reader in list(self._readers):
                reader.add(added)
            if self._stops_reading:
                break
        return found

    def _figures_now(self, beside: Mapping[str, Any]) -> bytes:
        if self._session_has_ended:
            self._running.debates.end_session()
        figures = self._running.figures().model_dump()
        return msgspec.json.encode({**figures, "debates": self._running.debates.shown(time.time()), **beside})

    def _charts_now(self) -> bytes:
        charts = [
            {**chart_data(chart), "note": chart.note} for chart in live_charts(self._running, self._signals.signals())
        ]
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
    def viewing(self) -> Iterator[None]:
        """Context of a page that follows the run."""
        self.viewers += 1
        try:
            yield
        finally:
            self.viewers -= 1
            self._idle_since = time.monotonic()

    async def updates(self) -> AsyncGenerator[bytes, None]:
        """Server-sent events: `figures`, `charts` when they have changed, `heartbeat` when nothing else was sent for
        `HEARTBEAT_S`, and `end` with the run's status when it has ended (`live`: connect again), or with a reason when
        it cannot be followed any more. A reader that is slow gets the latest ones."""
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
                yield _HEARTBEAT

    def _is_newer(self, version: int) -> bool:
        return version < self._version

    async def _wait(self, holds: Callable[[], bool]) -> bool:
        """Wait until something holds or the run has ended; False when neither is so within `HEARTBEAT_S`."""
        try:
            async with asyncio.timeout(HEARTBEAT_S), self._news:
                await self._news.wait_for(lambda: self._ended or holds())
        except TimeoutError:
            return False
        return True

    async def debate(self, case_id: str) -> AsyncGenerator[bytes, None]:
        """Server-sent events of a debate: a `note` for each that is recorded, then for each that is added; `end` when
        it has its verdict or was cancelled, or with a reason when the run cannot be followed any more."""
        reader = DebateReader(case_id)
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
                if self._ended and self._how.get("status") == "live" and not self._reason:
                    return  # without an `end`: the page connects again by itself
                if reader.has_ended or (self._ended and not reader.events):
                    yield encode_event("end", msgspec.json.encode({"reason": self._reason}))
                    return
                if not await self._wait(lambda: bool(reader.events)):
                    yield _HEARTBEAT
        finally:
            self._readers.remove(reader)
