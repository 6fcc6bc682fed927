"""Actions of a page on a run: stop it, and answer its debates that wait for a person."""

from __future__ import annotations

import asyncio
import math
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import owner_pid
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.runs.decide import pending_forms, record_decision
from moot.deploy.runs.open_run import NAME as OF_A_SERVER
from moot.deploy.service.errors import RequestError
from moot.deploy.service.view.form_context import FormContexts
from moot.protocols.errors import RunFolderBusy

_CAUGHT = re.compile(r"^SigCgt:\s*([0-9a-f]+)$", re.MULTILINE)

_LOOK_EACH_S = 2.0
"""Least seconds between two look-ups of the process that works on a run."""

STOPPING = "stopping: calls under way are finished, and the same command resumes the run"


class DecisionBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of a decision: one of the actions of a case's form, and its text."""

    case: str
    action: str
    text: str = ""


class RunControl(Protocol):
    """Control of a run; each action returns a line for the person."""

    async def beside(self) -> Mapping[str, Any]:
        """Values beside the figures of the run: `can_stop`, and those that only its own process knows."""
        ...

    async def stop(self) -> str:
        """Stop the run after calls in flight, as the first Ctrl-C does.

        Raises:
            RequestError: the run cannot be stopped from here.
        """
        ...

    async def pending(self) -> list[dict[str, Any]]:
        """Forms that wait for a person."""
        ...

    async def decide(self, body: DecisionBody) -> str:
        """Answer a form.

        Raises:
            UserError: the case has no such form, or the form no such action.
        """
        ...


class RecordedControl:
    """Control of a run of another process, or of none.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._contexts = folder, FormContexts(folder)
        self._stopped: set[int] = set()
        self._can_stop, self._looked_at = False, -math.inf

    async def beside(self) -> Mapping[str, Any]:
        """See `RunControl.beside`."""
        now = time.monotonic()
        if now - self._looked_at > _LOOK_EACH_S:
            self._looked_at, self._can_stop = now, await asyncio.to_thread(self._stoppable) is not None
        return {"can_stop": self._can_stop, "budgets": None, "limits": None}

    def _stoppable(self) -> int | None:
        """Process that works on the run, if an interrupt makes it finish calls in flight; an interrupt of a server
        would end the server."""
        folder = RunFolder(self._folder)
        pid = owner_pid(folder)
        if pid is None or pid == os.getpid() or not _catches_interrupt(pid):
            return None
        settings = read_run_yaml(folder)
        return None if settings.get("task") == OF_A_SERVER and settings.get("cases") is None else pid

    async def stop(self) -> str:
        """See `RunControl.stop`; a process is interrupted once, because a second interrupt would end it at once."""
        pid = await asyncio.to_thread(self._stoppable)
        if pid is None:
            raise RequestError(409, "the run cannot be stopped from here: press Ctrl-C once where it was started")
        if pid not in self._stopped:
            try:
                os.kill(pid, signal.SIGINT)
            except OSError as error:
                raise RequestError(409, f"process {pid} cannot be stopped from here: {error.strerror}") from None
            self._stopped.add(pid)
        return STOPPING

    async def pending(self) -> list[dict[str, Any]]:
        """See `RunControl.pending`."""
        found = await asyncio.to_thread(pending_forms, self._folder)
        return await asyncio.to_thread(self._contexts.describe, found)

    async def decide(self, body: DecisionBody) -> str:
        """See `RunControl.decide`: the decision is recorded, and used when the run resumes."""

        def recorded() -> None:
            record_decision(self._folder, body.case, body.action, body.text)  # runs an event loop of its own

        try:
            await asyncio.to_thread(recorded)
        except RunFolderBusy:
            message = (
                "the run is in progress, and takes decisions when it has ended; `moot run --watch --attended` at once"
            )
            raise RequestError(409, message) from None
        return "recorded; run the run's own command to resume"


def _catches_interrupt(pid: int) -> bool:
    """Whether a process handles SIGINT, so that it does not die of it."""
    try:
        found = _CAUGHT.search(Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return False
    return found is not None and bool(int(found[1], 16) >> (signal.SIGINT - 1) & 1)
