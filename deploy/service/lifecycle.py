"""Lifecycle of a service's run: opening, and reopening after a transient failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from moot.deploy.runs.open_run import OpenRun
from moot.protocols.errors import RunFolderBusy

_log = structlog.get_logger(__name__)
FIRST_S, LONGEST_S = 5.0, 60.0
"""Seconds before the first attempt to reopen a run, and the maximum between attempts (exponential backoff)."""


class RunLifecycle:
    """Keeps the run of one kind of request open. Lives in one event loop.

    Args:
        kind: the kind's name in the log.
        run: the run, not open yet.
        resume: resumes accepted requests; called when the run is reopened, and again if it fails.

    Attributes:
        why: why the run stopped, while it is being reopened; empty otherwise.
        again_s: seconds between the last attempt and the next.
    """

    def __init__(self, kind: str, run: OpenRun, resume: Callable[[], Awaitable[None]]) -> None:
        self._kind, self._run, self._resume = kind, run, resume
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self.why = ""
        self.again_s = FIRST_S

    async def open(self, busy_s: float) -> None:
        """Open the run, waiting up to `busy_s` seconds for an earlier owner to release its record.

        Raises:
            UserError: see `OpenRun.open`.
        """
        deadline = time.monotonic() + busy_s
        while True:
            try:
                return await self._run.open()
            except RunFolderBusy:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(0.5)

    def reopen_if_stopped(self) -> None:
        """Start to reopen the run if it stopped for a transient reason."""
        if self._task is None and self._run.can_reopen and not self._stopped:
            self.why, self.again_s = self._run.refusal, FIRST_S
            self._task = asyncio.create_task(self._reopen())

    async def cancel(self) -> None:
        """Stop trying. Idempotent."""
        self._stopped = True
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _reopen(self) -> None:
        try:
            while self._run.can_reopen:
                self.why, self.again_s = self._run.refusal, FIRST_S
                _log.info("a run has stopped: it will be reopened", kind=self._kind, why=self.why)
                await self._close()
                await self._until_open()
        finally:
            self._task, self.why = None, ""

    async def _close(self) -> None:
        """Close the run completely, even when cancelled, so that no engine is left behind."""
        closing = asyncio.ensure_future(self._run.close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.gather(closing, return_exceptions=True)
            raise
        except Exception as error:  # the journal has what was recorded
            _log.warning("a stopped run was not closed in order", kind=self._kind, error=repr(error))

    async def _until_open(self) -> None:
        while True:
            await asyncio.sleep(self.again_s)
            try:
                if not self._run.is_open:
                    await self._run.open()
                return await self._resume()
            except Exception as error:
                self.again_s = min(LONGEST_S, 2 * self.again_s)
                _log.warning("a run cannot be reopened yet", kind=self._kind, error=str(error), again_s=self.again_s)
