"""Runs that pages follow: each followed once, and released a while after its last page has closed."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from moot.deploy.results.run_info import read_run_info
from moot.deploy.results.text import shell_path
from moot.deploy.service.errors import RequestError
from moot.deploy.service.live.live_run import LiveRun
from moot.deploy.service.view.actions import RecordedControl, RunControl
from moot.deploy.service.view.catalogue import FoundRun

_MOST_VIEWERS = 64
_LAST_READ_S = 20.0
"""Most seconds for the last figures of this process's run, which has ended."""


@dataclass(frozen=True)
class OwnProcess:
    """Knowledge of a run's own process.

    Attributes:
        control: control of the run.
        named: the run's folder as the user gave it.
    """

    control: RunControl
    named: str

    @property
    def others(self) -> str:
        """The command that shows all runs beside this one."""
        return f"moot view {shell_path(Path(self.named).parent)}"


class FollowedRuns:
    """Runs that pages follow.

    Args:
        process: the process that works on the run, if it is this one.
    """

    def __init__(self, process: OwnProcess | None = None) -> None:
        self._process = process
        self._live: dict[str, LiveRun] = {}
        self._controls: dict[str, RunControl] = {}
        self._opening, self._is_closed = asyncio.Lock(), False

    def control(self, run: FoundRun) -> RunControl:
        """Control of a run."""
        if self._process is not None:
            return self._process.control
        return self._controls.setdefault(run.name, RecordedControl(run.path))

    async def follow(self, run: FoundRun, place: ExitStack) -> LiveRun:
        """Follow a run while `place` is open.

        Raises:
            RequestError: too many pages follow runs, or the server is stopping.
            RecordError: run.yaml cannot be read.
        """
        if sum(live.viewers for live in self._live.values()) >= _MOST_VIEWERS:
            raise RequestError(429, f"{_MOST_VIEWERS} pages follow runs: close one", retry_after_s=10)
        async with self._opening:
            live = self._live.get(run.name)
            if live is None or live.has_ended:  # the run may have been resumed since
                if self._is_closed:
                    raise RequestError(503, "the server is stopping", retry_after_s=2)
                live = self._live[run.name] = await asyncio.to_thread(self._make, run)
                live.open(partial(self._release, run.name, live))
            place.enter_context(live.viewing())
        return live

    def _release(self, name: str, ended: LiveRun) -> None:
        if self._live.get(name) is ended:
            del self._live[name]

    def _make(self, run: FoundRun) -> LiveRun:
        info, beside = read_run_info(run.path), self.control(run).beside
        if self._process is not None:
            return LiveRun(info, lambda: True, beside, f"moot view {shell_path(self._process.named)}")
        return LiveRun(info, run.is_live, beside)

    async def close(self) -> None:
        """Stop following; open pages get the end of the stream, and those of this process's run its last figures."""
        async with self._opening:
            self._is_closed = True
        last_read_s = 0.0 if self._process is None else _LAST_READ_S
        await asyncio.gather(*(live.close(last_read_s) for live in self._live.values()))
