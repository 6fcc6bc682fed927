"""Asynchronous reader of another run's replies: opens and reads the run in a thread, many rows at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from moot.actors.record.recorded_run import RecordedRun, Row
from moot.protocols.errors import RecordError

Index = TypeVar("Index")

_MOST_ROWS = 512
_WOKEN_TOGETHER = 16


class RecordedReplies(Generic[Index]):
    """Batched reader of a run's replies; opens the run on first use.

    Requests during a read go into the next batch, so that a row group is decoded once for many.

    Args:
        folder: the run's folder.
        index: builds the caller's index of the replies, in the same thread.
    """

    def __init__(self, folder: str | Path, index: Callable[[RecordedRun], Index]) -> None:
        self._folder, self._make_index = folder, index
        self._opened: tuple[RecordedRun, Index] | None = None
        self._opening: asyncio.Task[tuple[RecordedRun, Index]] | None = None
        self._wanted: list[tuple[int, asyncio.Future[Row]]] = []
        self._reading: asyncio.Task[None] | None = None

    async def opened(self) -> tuple[RecordedRun, Index]:
        """The run and its index; waiting callers continue in the order of their calls.

        Raises:
            RecordError: see `RecordedRun`.
        """
        if self._opened is None:
            if self._opening is None:
                self._opening = asyncio.create_task(asyncio.to_thread(self._open))
            self._opened = await asyncio.shield(self._opening)
        return self._opened

    def _open(self) -> tuple[RecordedRun, Index]:
        run = RecordedRun(self._folder)
        return run, self._make_index(run)

    async def row(self, number: int) -> Row:
        """Complete row.

        Raises:
            RecordError: a file cannot be read any more.
        """
        wanted: asyncio.Future[Row] = asyncio.get_running_loop().create_future()
        self._wanted.append((number, wanted))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        return await wanted

    async def _read(self) -> None:
        assert self._opened is not None, "numbers of rows come from an opened run"
        run, _ = self._opened
        try:
            while self._wanted:
                batch, self._wanted = self._wanted[:_MOST_ROWS], self._wanted[_MOST_ROWS:]
                try:
                    rows = await asyncio.to_thread(run.read, [number for number, _ in batch])
                except Exception as error:
                    for _, wanted in batch:
                        if not wanted.done():
                            wanted.set_exception(RecordError(str(error)))
                    continue
                for place, (number, wanted) in enumerate(batch, 1):
                    if not wanted.done():
                        wanted.set_result(rows[number])
                    if place % _WOKEN_TOGETHER == 0:
                        await asyncio.sleep(0)  # a woken caller continues at once: let others run too
        finally:
            self._reading = None
