"""Pending decisions of a recorded run: list them, and record a person's decision."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.compute as pc

from moot.actors.debate.inline_engine import LocalRecordClient
from moot.actors.debate.outcomes import decision_columns
from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import RecordOwner
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.store.mirror import display_name, store_of
from moot.actors.record.tables import read_table
from moot.deploy.results.text import shell_case_id, shell_path, visible_line
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.messages import Ask, Decision, Form
from moot.protocols.replies import DecisionReply
from moot.protocols.reply_ids import reply_id


@dataclass(frozen=True)
class PendingForm:
    """Form without a decision.

    Attributes:
        path: path of the waiting step.
        at: Unix time at which the debate was parked.
    """

    case_id: str
    attempt: int
    path: str
    form: Form
    at: float


def pending_forms(folder: str | Path) -> list[PendingForm]:
    """Pending forms of a run, oldest first.

    Raises:
        RecordError: the folder contains no run.
    """
    parked = read_table(folder, "events", ["data", "at"], pc.field("kind") == "parked")
    if not parked.num_rows:
        return []
    waiting = pc.field("case_id").isin(pc.unique(parked["case_id"]))
    turns = read_table(folder, "turns", ["role"], waiting).to_pylist()
    answered = {(row["case_id"], row["attempt"], row["path"]) for row in turns if row["role"] == "person"}
    verdicts = read_table(folder, "verdicts", ["failed"], waiting).to_pylist()
    closed = {(row["case_id"], row["attempt"]) for row in verdicts}
    pending = [
        _form(row)
        for row in parked.to_pylist()
        if (row["case_id"], row["attempt"], row["path"]) not in answered
        and (row["case_id"], row["attempt"]) not in closed
    ]
    return sorted(pending, key=lambda form: (form.at, form.case_id))


def _form(row: dict[str, Any]) -> PendingForm:
    form = msgspec.convert(msgspec.json.decode(row["data"]), Form)
    return PendingForm(row["case_id"], row["attempt"], row["path"], form, row["at"] or 0.0)


def pending_form(folder: str | Path, case_id: str) -> PendingForm:
    """Pending form of a case, the latest if it has several.

    Raises:
        ConfigError: the case has no pending form.
        RecordError: the folder contains no run.
    """
    forms = pending_forms(folder)
    of_case = [each for each in forms if each.case_id == case_id]
    if not of_case:
        if not forms:
            raise ConfigError(f"{folder}: no pending decisions")
        raise unknown_name("waiting case", case_id, sorted({each.case_id for each in forms}))
    return of_case[-1]


def decide_command(folder: str, case_id: str, answer: str) -> str:
    """Command that records a decision on a case's pending form.

    >>> decide_command("runs/mine", "case 1", "ask 'TEXT'")
    "moot decide runs/mine 'case 1' ask 'TEXT'"
    """
    return f"moot decide {shell_path(folder)} {shell_case_id(case_id)} {visible_line(answer)}"


def answer_forms(form: Form) -> list[str]:
    """The form's actions as typed in a command; an action that needs a text with a placeholder for it."""
    return [visible_line(f"{action} 'TEXT'" if form.takes_text(action) else action) for action in form.actions]


def record_decision(folder: str | Path, case_id: str, action: str, text: str = "") -> PendingForm:
    """Record a decision on a case's pending form; the run uses it when it is resumed.

    Raises:
        ConfigError: the case has no pending form, the form has no such action, or the action lacks its text.
        RunFolderBusy: another process owns the run.
        RecordError: the folder contains no run.
    """
    pending = pending_form(folder, case_id)
    if action not in pending.form.actions:
        raise unknown_name(f"action for {case_id}", action, pending.form.actions)
    if not text.strip() and pending.form.takes_text(action):
        typed = decide_command(display_name(folder), case_id, f"{action} 'TEXT'")
        raise ConfigError(f"{case_id}: the action {action!r} needs a text after it: `{typed}`")
    ask = Ask(
        case_id=case_id,
        attempt=pending.attempt,
        path=pending.path,
        role="person",
        template="consult",
        slots=msgspec.to_builtins(pending.form),
        reply=reply_id(DecisionReply),
    )
    asyncio.run(_record(RunFolder(folder, store_of(folder)), decision_columns(ask, Decision(action, text))))
    return pending


async def _record(run: RunFolder, columns: dict[str, Any]) -> None:
    owner = await RecordOwner.acquire(run)
    await owner.run(lambda epoch: _write(run, epoch, columns))


async def _write(run: RunFolder, epoch: int, columns: dict[str, Any]) -> None:
    writer = RecordWriter(run, epoch)
    await writer.load()
    record_client = LocalRecordClient(writer)
    record_client.put_reply(columns["case_id"], columns)
    await record_client.history(columns["case_id"], columns["attempt"])
    await writer.close()
    await asyncio.to_thread(compact_leftovers, run, epoch)
