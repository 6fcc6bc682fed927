"""A person's decision, put into the record of a run whose debate waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from moot.actors.outcomes import DecisionReply, decision_columns
from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.folder import Ownership, RunFolder
from moot.actors.record.recorder import Recorder
from moot.actors.record.tables import read_table
from moot.actors.scribe import LocalScribe
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.messages import Ask, Decision
from moot.protocols.replies import reply_path


@dataclass(frozen=True)
class Waiting:
    """A form that no one has answered.

    Attributes:
        actions: what can be decided.
        at: unix time at which the debate was put aside.
    """

    case_id: str
    attempt: int
    path: str
    title: str
    body: str
    actions: tuple[str, ...]
    at: float


def waiting(folder: str | Path) -> list[Waiting]:
    """The forms of a run that wait for a person, oldest first.

    Raises:
        RecordError: there is no run in the folder.
    """
    decided = read_table(folder, "turns", ["role"]).to_pylist()
    answered = {(row["case_id"], row["attempt"], row["path"]) for row in decided if row["role"] == "person"}
    closed = {(row["case_id"], row["attempt"]) for row in read_table(folder, "verdicts", ["failed"]).to_pylist()}
    found = [
        _form(row)
        for row in read_table(folder, "events", ["data", "at"]).to_pylist()
        if row["kind"] == "parked"
        and (row["case_id"], row["attempt"], row["path"]) not in answered
        and (row["case_id"], row["attempt"]) not in closed
    ]
    return sorted(found, key=lambda form: (form.at, form.case_id))


def _form(row: dict[str, Any]) -> Waiting:
    data = msgspec.json.decode(row["data"])
    return Waiting(
        row["case_id"],
        row["attempt"],
        row["path"],
        data.get("title", ""),
        data.get("body", ""),
        tuple(data.get("actions", ())),
        row["at"] or 0.0,
    )


def decide(folder: str | Path, case_id: str, action: str, text: str = "") -> Waiting:
    """Record a decision on the form that a case waits with; the run goes on with it when it is started again.

    Raises:
        ConfigError: the case does not wait, or the action is not one of the form's.
        RunFolderBusy: another process works on the run.
        RecordError: there is no run in the folder.
    """
    forms = waiting(folder)
    mine = [form for form in forms if form.case_id == case_id]
    if not mine:
        if not forms:
            raise ConfigError(f"{folder}: no debate waits for a person")
        raise unknown_name("waiting case", case_id, sorted({form.case_id for form in forms}))
    form = mine[-1]
    if action not in form.actions:
        raise unknown_name(f"action for {case_id}", action, form.actions)
    ask = Ask(
        case_id=case_id,
        attempt=form.attempt,
        path=form.path,
        role="person",
        template="consult",
        slots={"title": form.title, "body": form.body, "actions": list(form.actions)},
        reply=reply_path(DecisionReply),
    )
    run = RunFolder(folder)
    ownership = Ownership.take(run)
    try:
        asyncio.run(_write(ownership, decision_columns(ask, Decision(action, text))))
    finally:
        ownership.release()
    return form


async def _write(ownership: Ownership, columns: dict[str, Any]) -> None:
    recorder = Recorder(ownership.folder.path, ownership.epoch)
    await recorder.load()
    scribe = LocalScribe(recorder)
    scribe.put_reply(columns["case_id"], columns)
    await scribe.history(columns["case_id"], columns["attempt"])
    await recorder.close()
    compact_leftovers(ownership.folder, ownership.epoch)
