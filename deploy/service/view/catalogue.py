"""Catalogue of a folder's runs: each with its state, and its figures as of the last change of its record."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.results.figures.run_list import RunFigures, run_figures
from moot.deploy.results.text import visible_line
from moot.deploy.runs.record_state import RecordFiles, record_files
from moot.deploy.runs.recorded_run import last_session, recorded_status
from moot.deploy.service.errors import RequestError
from moot.protocols.errors import ConfigError, MootError, RecordError
from moot.protocols.near_paths import near_path

_log = structlog.get_logger(__name__)

BELOW = "~"
"""Separator between the names of a folder and of a run in it, for a run one folder deeper, such as a server's or one of
several protocols."""

_AT_ONCE = 1
"""Runs whose figures are computed at once, beside those read for reports."""

_LIVE_EACH_S = 10.0
"""Least seconds between two computations of a live run's figures."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """Run in the folder.

    Attributes:
        name: unique in the catalogue; part of its address.
        path: its folder.
    """

    name: str
    path: Path

    @property
    def is_nameable(self) -> bool:
        """Whether the name of its folder is a text; no record in another can be read."""
        return os.fsencode(self.path) == str(self.path).encode("utf-8", "replace")

    def is_live(self) -> bool:
        """Whether a process works on it."""
        return RunFolder(self.path).is_owned()

    def version(self) -> RecordVersion | None:
        """Current version of its record; None while its files change."""
        files = record_files(RunFolder(self.path))
        try:
            settings = (self.path / "run.yaml").stat()
        except OSError:
            return None
        return None if files is None else (files, settings.st_mtime_ns)


RecordVersion = tuple[RecordFiles, int]
"""Version of a record: equal versions have equal content."""


class _Computed(NamedTuple):
    """Figures of a run for a version of its record, and the time of their computation (monotonic seconds)."""

    version: RecordVersion | None
    figures: RunFigures | None
    at: float
    is_unreadable: bool = False

    def is_old(self, *, live: bool) -> bool:
        """Whether they are recomputed if the record has changed."""
        return not live or time.monotonic() - self.at > _LIVE_EACH_S


_UNKNOWN = _Computed(None, None, -math.inf)


class RunCatalogue:
    """Runs of a folder, and in folders directly below it. Links are not followed.

    Args:
        root: the folder, or a single run's.

    Raises:
        ConfigError: there is no such folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root  # as the user gave it: so pages and their commands name it
        if not self.root.is_dir():
            raise ConfigError(
                f"{root}: no such folder{near_path(root) or '; name the folder that holds your runs, such as runs'}"
            )
        self._figures: dict[Path, _Computed] = {}
        self._settings: dict[Path, tuple[int, dict[str, Any] | None]] = {}
        self._computing: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    def runs(self) -> list[FoundRun]:
        """All runs, by name."""
        return sorted(self._found(), key=lambda run: run.name)

    @property
    def only(self) -> FoundRun | None:
        """The run, if the folder itself is one."""
        return FoundRun(_name(self.root.absolute()) or "run", self.root) if _is_run(self.root) else None

    def find(self, name: str) -> FoundRun:
        """Run with a name; every name comes from the folder's content.

        Raises:
            RequestError: 404, or 422 where the record cannot be read because of its folder's name.
        """
        for run in self._found():
            if run.name == name and not run.is_nameable:
                raise RequestError(422, f"the name of the folder {name} is not UTF-8: rename it")
            if run.name == name:
                return run
        raise RequestError(404, f"no run is called {visible_line(name)[:100]!r} here")

    def _found(self) -> Iterator[FoundRun]:
        """Every run; of those whose names would be equal all but the first have a number."""
        if (only := self.only) is not None:
            yield only
            return
        used: set[str] = set()
        for parts in self._folders_of_runs():
            name = plain = BELOW.join(map(_name, parts))
            number = 1
            while name in used:
                name = f"{plain} ({(number := number + 1)})"
            used.add(name)
            yield FoundRun(name, parts[-1])

    def _folders_of_runs(self) -> Iterator[tuple[Path, ...]]:
        """Folders of runs, those one folder deeper last, with the folder that they lie in."""
        others = []
        for folder in sorted(_folders(self.root)):
            if _is_run(folder):
                yield (folder,)
            else:
                others.append(folder)
        for folder in others:
            yield from ((folder, below) for below in sorted(_folders(folder)) if _is_run(below))

    async def list(self) -> list[dict[str, Any]]:
        """Row for each run, the most recently started first; `figures` is null until computed.

        `state` is a `RunStatus`, or `unreadable` when run.yaml cannot be read, or the record of a run that is not live.
        """
        runs = await asyncio.to_thread(self.runs)
        rows = [await asyncio.to_thread(self._row, run) for run in runs]
        for run, row in zip(runs, rows, strict=True):
            if row["is_pending"]:
                self._compute(run)
        return sorted(rows, key=lambda row: (row["started_at"] or "", row["name"]), reverse=True)

    def _row(self, run: FoundRun) -> dict[str, Any]:
        settings = self._settings_of(run) if run.is_nameable else None
        if settings is None:
            return {"name": run.name, "state": "unreadable", "started_at": None, "figures": None, "is_pending": False}
        state = recorded_status(RunFolder(run.path), settings)
        known = self._figures.get(run.path, _UNKNOWN)
        texts = {name: _text(settings.get(name)) for name in ("protocol", "preset", "task", "model", "started_at")}
        texts["protocol"] = _text(settings.get("protocol_name")) or texts["protocol"]
        return {
            "name": run.name,
            "state": "unreadable" if known.is_unreadable and state != "live" else state,
            "stopped_by": _text(last_session(settings).get("stopped_by")),
            **texts,
            "figures": None if known.figures is None else known.figures.model_dump(),
            "is_pending": known.is_old(live=state == "live") and known.version != run.version(),
        }

    def _settings_of(self, run: FoundRun) -> dict[str, Any] | None:
        """Content of run.yaml, cached until it changes; None when it cannot be read."""
        try:
            changed_at = (run.path / "run.yaml").stat().st_mtime_ns
            known = self._settings.get(run.path)
            if known is None or known[0] != changed_at:
                known = self._settings[run.path] = (changed_at, read_run_yaml(RunFolder(run.path)))
        except (OSError, RecordError) as error:
            _log.debug("a run cannot be listed", run=run.name, error=str(error))
            return None
        return known[1]

    def _compute(self, run: FoundRun) -> None:
        if any(task.get_name() == run.name for task in self._computing):
            return
        task = asyncio.create_task(self._computed(run), name=run.name)
        self._computing.add(task)
        task.add_done_callback(self._computing.discard)

    async def _computed(self, run: FoundRun) -> None:
        async with self._slots:
            version = await asyncio.to_thread(run.version)
            try:
                figures = await asyncio.to_thread(run_figures, run.path)
            except MootError as error:
                _log.debug("a run's figures are unknown", run=run.name, error=str(error))
                figures = None
            self._figures[run.path] = _Computed(version, figures, time.monotonic(), is_unreadable=figures is None)

    async def close(self) -> None:
        """Stop computing."""
        for task in self._computing:
            task.cancel()
        await asyncio.gather(*self._computing, return_exceptions=True)


def _folders(place: Path) -> list[Path]:
    """Subfolders that are no links and not hidden; empty when the folder cannot be read."""
    try:
        with os.scandir(place) as entries:
            found = [e for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
            return [place / entry.name for entry in found]
    except OSError:
        return []


def _is_run(folder: Path) -> bool:
    settings = folder / "run.yaml"
    return settings.is_file() and not settings.is_symlink()


def _name(folder: Path) -> str:
    """A folder's name; bytes that are no UTF-8 are escaped, as JSON and addresses cannot hold them."""
    return os.fsencode(folder.name).decode("utf-8", "backslashreplace")


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.isoformat() if isinstance(value, datetime) else str(value)
