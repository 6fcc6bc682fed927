"""Reading a record back while its writer goes on writing: one reading at a time, of no more than is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from moot.actors.record.closing import Closing, Ended, ModelUsage
from moot.actors.record.folder import RunFolder
from moot.actors.record.journal import Journal
from moot.actors.record.memory import Memory
from moot.actors.record.recovery import History, histories
from moot.actors.record.schema import CaseKey
from moot.actors.record.tables import of_cases, read_table
from moot.actors.record.threads import to_its_end

_AS_JSON = ("distribution", "payload")
_PUT_DOWN = ("failed", "gold", "correct", "at")
"""Columns of a verdict that its moderator does not know."""


class ReadBack:
    """What one writer is asked of its record.

    Args:
        folder: the run's folder.
        journal: the writer's.
        memory: knows where a case's rows lie in parts.
    """

    def __init__(self, folder: RunFolder, journal: Journal, memory: Memory) -> None:
        self._folder, self._journal, self._memory = folder, journal, memory
        self._reading = asyncio.Lock()

    async def histories(self, keys: Sequence[CaseKey]) -> list[History]:
        """What is recorded of each debate, up to what the writer has taken by now.

        Raises:
            RecordError: what it has taken cannot be written.
        """
        await self._journal.readable()
        async with self._reading:
            return await to_its_end(lambda: histories(self._folder, keys, self._memory))

    async def endings(self, case_ids: Sequence[str]) -> dict[str, Ended]:
        """See `recorded_endings`."""
        async with self._reading:
            return await to_its_end(lambda: recorded_endings(self._folder, case_ids, self._memory))


def recorded_endings(folder: RunFolder, case_ids: Sequence[str], memory: Memory) -> dict[str, Ended]:
    """By case, the latest attempt that has a verdict; a case without one is left out."""
    groups, only = memory.groups_of(case_ids), of_cases(case_ids)
    closings: dict[str, Closing] = {}
    for row in read_table(folder, "verdicts", only=only, groups=groups).to_pylist():
        known = closings.get(row["case_id"])
        if known is None or row["attempt"] > known.attempt:
            closings[row["case_id"]] = _closing(row)
    usage: dict[str, dict[str, ModelUsage]] = {case_id: {} for case_id in closings}
    columns = ["model", "prompt_tokens", "completion_tokens"]
    for row in read_table(folder, "turns", columns, only=only, groups=groups).to_pylist() if closings else ():
        closing = closings.get(row["case_id"])
        if closing is None or row["attempt"] != closing.attempt or row["superseded"] or not row["model"]:
            continue
        of_model = usage[row["case_id"]].setdefault(row["model"], ModelUsage())
        of_model.add(row["prompt_tokens"], row["completion_tokens"])
    return {case_id: Ended(closing, usage[case_id]) for case_id, closing in closings.items()}


def _closing(row: dict[str, object]) -> Closing:
    values = {name: value for name, value in row.items() if name not in _PUT_DOWN}
    for name in _AS_JSON:
        raw = values[name]
        values[name] = msgspec.json.decode(raw) if isinstance(raw, str) else None
    return msgspec.convert({**values, "payload": values["payload"] or {}, "replies": {}}, Closing)
