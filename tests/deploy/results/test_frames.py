"""The frames of a record: every view has the rows of `read_table`, and its derived columns are those of the readers."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from moot.actors.record.folder import RunFolder
from moot.actors.record.rows import step_of
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.costs import _usd, has_known_tokens, lacks_usage, paid_calls
from moot.deploy.results.frames import VIEWS, Frames
from moot.deploy.results.record import EventPlace, RunRecord, is_counted
from moot.deploy.results.references import case_groups
from moot.protocols.errors import RecordError
from moot.protocols.events import DebateEvent

FROZEN = Path(__file__).parent / "frozen" / "records"
EARLIER = Path(__file__).parents[1] / "runs" / "earlier_records" / "records.tar.xz"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All frozen records, and those of earlier versions."""
    folder = tmp_path_factory.mktemp("frozen")
    for archive in [*FROZEN.glob("*.tar.xz"), EARLIER]:
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
    return sorted(found.parent for found in folder.rglob("run.yaml") if RunFolder(found.parent).exists())


def test_every_view_has_the_rows_of_its_table(records: list[Path]) -> None:
    assert len(records) > 30
    for record in records:
        frames = Frames.of(record)
        for name in VIEWS:
            expected = _read(read_table, record, name)
            if isinstance(expected, str):  # damaged
                assert _read(frames.table, name) == expected
                continue
            found = frames.table(name, expected.column_names)
            assert found.schema.types == expected.schema.types
            for column in expected.column_names:
                if (name, column) != ("verdicts", "correct"):  # it has today's rule, see below
                    assert _is_equal(found[column], expected[column]), (record, name, column)


def _read(read: Callable[..., pa.Table], *arguments: Any) -> Any:
    """What a reader gives, or the message of its error."""
    try:
        return read(*arguments)
    except RecordError as error:
        return str(error)


def _is_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    return one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())  # not a number is equal, too


def test_derived_columns_are_those_of_the_readers(records: list[Path]) -> None:
    for record in records:
        try:
            today, frames = RunRecord(record), Frames(record)
            expected = dict(_derived(today))
        except RecordError:
            continue
        for (name, where, columns), rows in expected.items():
            found = frames.table(name, columns, where)
            for column in columns:
                assert found[column].to_pylist() == list(rows[column]), (record, name, column)


def _derived(record: RunRecord) -> Iterator[tuple[tuple[str, str, tuple[str, ...]], Mapping[str, Any]]]:
    """Columns by what they are of: a view, and a condition on its rows."""

    def of(name: str, where: str = "true", **columns: Any) -> Any:
        lists = {
            column: np.asarray(rows).tolist() if isinstance(rows, np.ndarray) else rows
            for column, rows in columns.items()
        }
        lists = {
            column: rows.to_pylist() if isinstance(rows, pa.Array | pa.ChunkedArray) else rows
            for column, rows in lists.items()
        }
        return (name, where, tuple(lists)), lists

    groups = case_groups(record.cases)
    yield of("cases", group_name=[groups.get(case) for case in record.cases["case_id"].to_pylist()])
    verdicts, turns = record.verdict_table, record.turns
    last = {(verdict.case_id, verdict.attempt) for verdict in record.verdicts}
    keys = list(zip(verdicts["case_id"].to_pylist(), verdicts["attempt"].to_pylist(), strict=True))
    yield of(
        "verdicts",
        correct=verdicts["correct"],
        scored=verdicts["correct"].is_valid(),
        debated=verdicts["debated"],
        latest=[key in last for key in keys],
        finished=[key in last and not failed for key, failed in zip(keys, verdicts["failed"].to_pylist(), strict=True)],
        group_name=[groups.get(case) for case, _ in keys],
    )
    yield of("turns", counted=_counted(turns, verdicts), step=[step_of(path) for path in turns["path"].to_pylist()])
    replies = record.replies
    usd, is_priced = _usd(replies, record.info.prices)
    yield of(
        "turns",
        "NOT person",
        superseded=replies.flag("superseded"),
        reused=replies.flag("reused"),
        is_call=replies.is_call,
        lacks_usage=replies.lacks_usage,
        tokens=[row.tokens for row in replies.rows()],
        truncated=replies.flag("truncated"),
        overlong=replies.flag("overlong"),
        usage_estimated=replies.flag("estimated"),
        cost_usd=[cost if known else None for cost, known in zip(usd.tolist(), is_priced.tolist(), strict=True)],
    )
    yield of("turns", "person", is_call=[False for role in turns["role"].to_pylist() if role == "person"])
    paid = paid_calls(turns)
    yield of("turns", "is_call", lacks_usage=lacks_usage(paid), has_known_tokens=has_known_tokens(paid))
    for name in ("events", "judgments"):
        yield of(name, counted=_counted(read_table(record.folder, name, []), verdicts))


def _counted(rows: pa.Table, verdicts: pa.Table) -> Any:
    counted = is_counted(rows, verdicts)
    return [True] * rows.num_rows if counted is None else counted


def test_events_of_a_type_are_those_that_pydantic_reads(records: list[Path]) -> None:
    for record in records:
        try:
            today, frames = RunRecord(record), Frames(record)
            kinds = set(today._events["kind"].to_pylist())
        except RecordError:
            continue
        for event_type in (each for each in _all_types(DebateEvent) if each.kind in kinds):
            expected, found = today.typed_events(event_type), frames.events_of(event_type)
            assert found.num_rows == len(expected), (record, event_type)
            places = zip(*(found[name].to_pylist() for name in EventPlace._fields), strict=True)
            assert list(places) == [place for place, _ in expected]
            for name in event_type.model_fields:
                values = [_plain(getattr(event, name)) for _, event in expected]
                assert all(map(_is_same, found[name].to_pylist(), values)), (record, event_type, name)


def _plain(value: Any) -> Any:
    return TypeAdapter(Any).dump_python(value, mode="json", by_alias=True, exclude_unset=True)


def _all_types(base: type[DebateEvent]) -> Iterator[type[DebateEvent]]:
    for each in base.__subclasses__():
        yield each
        yield from _all_types(each)


def _is_same(found: Any, value: Any) -> bool:
    """Whether a value of a column is a recorded one: any other than a column's type is JSON, and a map is of pairs."""
    if isinstance(found, str) and found != value:
        found = json.loads(found)
    if isinstance(value, dict):
        own = found if isinstance(found, dict) else dict(found or ())
        return own.keys() >= value.keys() and all(_is_same(own[key], each) for key, each in value.items())
    if isinstance(value, list):
        return len(found) == len(value) and all(map(_is_same, found, value))
    return bool(found == value) and isinstance(found, bool) == isinstance(value, bool)
