"""Recorded runs opened from their folder: finished, live, failed or interrupted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.store.mirror import record_path
from moot.deploy.results.record import read_events
from moot.deploy.runs.outcome import STATUSES, Run, RunStatus
from moot.deploy.runs.record_state import RecordState


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open the record of a run in any state; starts nothing.

    The result is a snapshot, also of a live run: open it again for later figures.

    >>> import tempfile, moot
    >>> out = tempfile.mkdtemp() + "/run"
    >>> _ = moot.run(task="sample", limit=2, engine="inline", out=out)
    >>> run = moot.open_run(out)
    >>> run.status, run.done, [case.case_id for case in run.cases]
    ('finished', 2, ['sample-001', 'sample-002'])

    Args:
        path: the run's folder, or its URI.

    Raises:
        RecordError: there is no run in the folder, or it cannot be read.
    """
    folder = record_path(path)
    record = RunFolder(folder)
    state, settings = RecordState.read(record), read_run_yaml(record)
    last, latest = last_session(settings), state.latest
    cases = settings.get("cases")
    parked = {event.case_id for event in read_events(folder, ["parked"])} - latest.keys()
    status = recorded_status(record, settings)
    return Run(
        path=folder,
        status=status,
        done=len(latest),
        failed=sum(failed for _, failed in latest.values()),
        left=max(0, cases - len(latest)) if isinstance(cases, int) else None,
        parked=tuple(sorted(parked)),
        under_way=0 if status in ("finished", "waiting") else len(state.in_progress() - parked),
        worked=False,
        stopped_by=str(last.get("stopped_by") or ""),
    )


def recorded_status(record: RunFolder, settings: Mapping[str, Any]) -> RunStatus:
    """Status of a run's last session.

    Args:
        record: the run's folder.
        settings: content of its run.yaml.
    """
    status = last_session(settings).get("status")
    if status == "running":
        return "live" if record.is_owned() else "killed"
    return next((known for known in STATUSES if known == status), "unknown")


def last_session(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The last session in run.yaml; empty when there is none."""
    sessions = settings.get("sessions")
    last = sessions[-1] if isinstance(sessions, list) and sessions else None
    return last if isinstance(last, Mapping) else {}
