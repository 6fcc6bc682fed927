"""Signals on file: what each writer of a run has aggregated, for other processes that show it.

runs/NAME/signals/eEPOCH-wWRITER.msgpack, replaced about once a second while it changes, and at the end. The files of
the latest owner cover the record up to their last write: what a killed owner recorded after it is missing until the run
is resumed, and a writer of the next owner has no file until it has read the record. They can be computed again from the
record, and are no part of it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog

from moot.actors.record.files import write_whole
from moot.actors.record.roll_files import epoch_of
from moot.actors.record.signal_aggregator import SignalAggregator
from moot.actors.record.signals import Signals, decode_signals, encode_signals

FOLDER = "signals"

_EACH_S = 1.0
_log = structlog.get_logger(__name__)


class SignalFile:
    """File of one writer's signals.

    Args:
        run: the run's folder.
        epoch: number of the owner.
        writer: number of the writer.
    """

    def __init__(self, run: Path, epoch: int, writer: int) -> None:
        self._path = run / FOLDER / f"e{epoch:04d}-w{writer}.msgpack"
        self._written = -1
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self, aggregator: SignalAggregator) -> None:
        """Keep the file up to date until `close`."""
        self._aggregator = aggregator
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        with suppress(OSError):
            await asyncio.to_thread(self._remove_earlier)
        while not self._closing.is_set():
            await self._write()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _EACH_S)
        await self._write()

    def _remove_earlier(self) -> None:
        """Remove the files of earlier owners, which the signals of this one cover."""
        for file in self._path.parent.glob("e*.msgpack"):
            if epoch_of(file.name) < epoch_of(self._path.name):
                file.unlink(missing_ok=True)

    async def _write(self) -> None:
        version = self._aggregator.version
        if version == self._written:
            return
        self._written = version
        try:
            signals = await self._aggregator.signals()
            await asyncio.to_thread(lambda: write_whole(self._path, encode_signals(signals)))
        except Exception as error:  # of whatever kind: nothing of the record is lost, and it must be closed
            _log.warning("the signals of a run cannot be written for its page", error=repr(error))

    async def close(self) -> None:
        """Write what has changed, and stop."""
        self._closing.set()
        if self._task is not None:
            await self._task


class SignalReader:
    """Reader of the signals that the writers of a run keep on file.

    Args:
        run: the run's folder.
    """

    def __init__(self, run: Path) -> None:
        self._folder = run / FOLDER
        self._known: dict[str, tuple[tuple[int, int], Signals]] = {}

    def signals(self) -> Signals:
        """The signals of the latest owner's writers; those of a file that another version of moot wrote are left out,
        with a warning."""
        files = list(self._folder.glob("e*.msgpack"))
        latest = max((epoch_of(file.name) for file in files), default=0)
        known, merged = {}, Signals()
        for file in sorted(each for each in files if epoch_of(each.name) == latest):
            with suppress(FileNotFoundError):  # an owner that has just begun removed it
                known[file.name] = self._read(file)
                merged = merged.merge(known[file.name][1])
        self._known = known
        return merged

    def _read(self, file: Path) -> tuple[tuple[int, int], Signals]:
        status = file.stat()
        seen = (status.st_mtime_ns, status.st_ino)
        if file.name in self._known and self._known[file.name][0] == seen:
            return self._known[file.name]
        try:
            return seen, decode_signals(file.read_bytes())
        except (msgspec.DecodeError, ValueError) as error:
            _log.warning("signals of a run cannot be read", file=str(file), error=str(error))
            return seen, Signals()
