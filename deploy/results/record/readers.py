"""Readers of a record's rows for figures: replies, events, and each case's latest verdict."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.agent.attempt import LENGTH
from moot.actors.record.debate_result import WITHDRAWN
from moot.actors.record.schema import CANCELLED, RESUMED
from moot.actors.record.tables import read_table
from moot.deploy.results.record.references import scored_verdicts
from moot.deploy.results.record.rows import EventRow, RecordedEvent, ReplyRow, VerdictRow
from moot.protocols.errors import ConfigError
from moot.protocols.events import DebateEvent

R = TypeVar("R", bound=RecordedEvent)
E = TypeVar("E", bound=DebateEvent)


_REPLY_TEXTS = ["role", "model", "outcome", "failure"]
_REPLY_COLUMNS = ["prompt_tokens", "completion_tokens", "reused_from", "finish_reason", "completion_tokens_estimate"]
_REPLY_COLUMNS += ["unconfirmed_attempts", "unconfirmed_tokens_max", "prompt_tokens_stated", "completion_tokens_stated"]


def data_frame(table: pa.Table) -> Any:
    """pandas DataFrame of a table.

    Raises:
        ConfigError: pandas is not installed.
    """
    try:
        importlib.import_module("pandas")
    except ImportError:
        raise ConfigError("pandas is not installed: pip install 'moot[pandas]'") from None
    return table.to_pandas()


def read_replies(folder: str | Path) -> list[ReplyRow]:
    """Every paid or reused reply, superseded ones included, without persons' decisions, which cost nothing."""
    rows = reply_rows(read_table(folder, "turns", [*_REPLY_TEXTS, *_REPLY_COLUMNS]))
    return list(map(ReplyRow._make, zip(*(rows[name].to_pylist() for name in ReplyRow._fields), strict=True)))


def reply_rows(turns: pa.Table) -> pa.Table:
    """Table with the fields of `ReplyRow` as columns and a row for every paid or reused reply."""
    table = turns.select(["case_id", "attempt", "path", "superseded", *_REPLY_TEXTS, *_REPLY_COLUMNS])
    table = table.filter(pc.not_equal(pc.fill_null(table["role"], ""), "person"))
    estimated = pc.or_(pc.is_valid(table["prompt_tokens_stated"]), pc.is_valid(table["completion_tokens_stated"]))
    columns = {
        **{name: table[name] for name in ("case_id", "attempt", "path")},
        **{name: pc.fill_null(table[name], "") for name in _REPLY_TEXTS},
        "prompt": table["prompt_tokens"],
        "completion": table["completion_tokens"],
        "reused": pc.not_equal(pc.fill_null(table["reused_from"], ""), ""),
        "superseded": table["superseded"],
        "unconfirmed": pc.fill_null(table["unconfirmed_attempts"], 0),
        "unconfirmed_tokens": pc.fill_null(table["unconfirmed_tokens_max"], 0),
        "received": table["completion_tokens_estimate"],
        "estimated": estimated,
        "truncated": pc.equal(pc.fill_null(table["finish_reason"], ""), LENGTH),
    }
    return pa.table({name: columns[name] for name in ReplyRow._fields})


def read_events(folder: str | Path, kinds: Iterable[str]) -> list[EventRow]:
    """Events of some kinds, of all attempts."""
    table = read_table(folder, "events", ["data"], pc.field("kind").isin(pa.array(sorted(kinds), pa.string())))
    columns = (table[name].to_pylist() for name in ("case_id", "attempt", "kind", "path"))
    return list(map(EventRow._make, zip(*columns, map(decode_json, table["data"].to_pylist()), strict=True)))


def withdrawn_cases(events: pa.Table) -> set[str]:
    """Ids of the cases whose latest debate was withdrawn and not submitted again; some may have an earlier verdict.

    Args:
        events: with `data`, in order of time; kinds other than `CANCELLED` and `RESUMED` are ignored.
    """
    found = events.filter(pc.is_in(events["kind"], value_set=pa.array([CANCELLED, RESUMED])))
    columns = (found[name].to_pylist() for name in ("case_id", "kind", "data"))
    last = {case_id: (kind, data) for case_id, kind, data in zip(*columns, strict=True)}
    return {
        case for case, (kind, data) in last.items() if kind == CANCELLED and decode_json(data).get("why") == WITHDRAWN
    }


def read_as(events: Iterable[R], event_type: type[E]) -> Iterator[tuple[R, E]]:
    """Events parsed as a type; events of its kind with another form are skipped."""
    for event in events:
        if event.kind == event_type.kind and (read := event_type.read(event.data, event.path)) is not None:
            yield event, read


def decode_json(data: str | None) -> dict[str, Any]:
    """JSON object of the record; empty for null. Another JSON value is under the key `value`."""
    if not data or data == "{}":  # the most frequent case: the events of asks
        return {}
    found = msgspec.json.decode(data)
    return found if isinstance(found, dict) else {"value": found}


def latest_verdicts(folder: str | Path) -> list[VerdictRow]:
    """Verdict of each case's latest attempt with one, in order of case id."""
    return latest_of(scored_verdicts(read_table(folder, "verdicts", _VERDICT_COLUMNS), folder))


_VERDICT_COLUMNS = ["answer", "how", "rounds", "failed", "failure", "gold", "correct", "at"]
_NOTHING: dict[str, Any] = {"how": "", "rounds": 0, "failed": False, "failure": "", "at": 0.0}
"""Values that replace null."""


def latest_of(verdicts: pa.Table) -> list[VerdictRow]:
    """Latest verdicts from a table of scored verdicts; see `latest_verdicts`."""
    rows = latest_rows(verdicts)
    columns = {
        name: pc.fill_null(rows[name], _NOTHING[name]) if name in _NOTHING else rows[name]
        for name in VerdictRow._fields
    }
    found = map(VerdictRow._make, zip(*(column.to_pylist() for column in columns.values()), strict=True))
    return sorted(found, key=lambda each: each.case_id)


def latest_rows(rows: pa.Table) -> pa.Table:
    """Rows of each case's latest attempt in a table, in their order."""
    if not rows.num_rows or pc.max(rows["attempt"]).as_py() == 0:
        return rows
    last = rows.group_by("case_id").aggregate([("attempt", "max")])
    latest = last["attempt_max"].take(pc.index_in(rows["case_id"], value_set=last["case_id"].combine_chunks()))
    return rows.filter(pc.equal(rows["attempt"], latest))


def counted_rows(rows: pa.Table, verdicts: pa.Table) -> pa.Table:
    """Rows of the attempts that count, in their order; see `is_counted`."""
    counted = is_counted(rows, verdicts)
    return rows if counted is None else rows.filter(counted)


def is_counted(rows: pa.Table, verdicts: pa.Table) -> pa.ChunkedArray | None:
    """Whether each row is of an attempt that counts: each case's latest attempt with a verdict; None if all are.

    Of a case without a verdict, all attempts count. An unfinished retry does not count.

    Args:
        rows: a table with the columns `case_id` and `attempt`.
        verdicts: verdicts of all attempts.
    """
    if not any(table.num_rows and pc.max(table["attempt"]).as_py() for table in (rows, verdicts)):
        return None
    last = verdicts.group_by("case_id").aggregate([("attempt", "max")])
    latest = last["attempt_max"].take(pc.index_in(rows["case_id"], value_set=last["case_id"].combine_chunks()))
    return pc.fill_null(pc.equal(rows["attempt"], latest), True)
