"""How debates ended, read back from the record for somebody who brings their cases again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.closing import Closing, Ended, ModelUsage
from moot.actors.record.folder import RunFolder
from moot.actors.record.part_index import PartIndex
from moot.actors.record.tables import read_table

_AS_JSON = ("distribution", "payload")
_PUT_DOWN = ("failed", "gold", "correct", "at")
"""Columns of a verdict that its moderator does not know."""


def recorded_endings(folder: RunFolder, case_ids: Sequence[str], index: PartIndex) -> dict[str, Ended]:
    """By case, the latest attempt that has a verdict; a case without one is left out."""
    groups = index.groups_of(case_ids)
    only = pc.field("case_id").isin(pa.array(sorted(set(case_ids)), pa.string()))
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
