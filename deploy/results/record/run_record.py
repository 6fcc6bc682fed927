"""A run's record as figures read it: each table once, as columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, wraps
from threading import Thread
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.schema import BOOKKEEPING_EVENTS, CaseKey
from moot.actors.record.store.mirror import record_path
from moot.actors.record.tables import read_table
from moot.deploy.results.record.readers import counted_rows, latest_of, reply_rows
from moot.deploy.results.record.references import References, scored_verdicts
from moot.deploy.results.record.reply_columns import ReplyColumns
from moot.deploy.results.record.rows import EventPlace, VerdictRow
from moot.deploy.results.record.run_info import RunInfo, read_run_info
from moot.protocols.errors import MootError
from moot.protocols.events import DebateEvent, EventData
from moot.protocols.selene.events import GateDecided

T = TypeVar("T")
D = TypeVar("D", bound=EventData)
E = TypeVar("E", bound=DebateEvent)

_TURNS = ["role", "model", "template", "text", "answer", "p_reason", "outcome", "failure", "error", "finish_reason"]
_TURNS += ["prompt_tokens", "completion_tokens", "completion_tokens_estimate", "prompt_tokens_stated"]
_TURNS += ["completion_tokens_stated", "reasoning_tokens", "reading", "reused_from", "unconfirmed_attempts"]
_TURNS += ["unconfirmed_tokens_max"]
_CASES = [
    "index",
    "content_hash",
    "question",
    "labels",
    "gold",
    "scoring",
    "accepted",
    "ratings",
    "group",
    "part",
    "tags",
    "judged",
]
_VERDICTS = ["answer", "how", "confidence", "distribution", "rounds", "payload", "failed", "failure", "gold"]
_VERDICTS += ["correct", "prompt_tokens", "completion_tokens", "calls_without_usage", "wall_s", "at"]


class RunRecord:
    """A run's record; what is read of it is kept, so that it is the same for every figure.

    Args:
        folder: the run's folder, or its URI.

    Attributes:
        folder: the local folder that is read.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = record_path(folder)
        self._computed: dict[Any, Any] = {}

    @classmethod
    def of(cls, source: RunRecord | str | os.PathLike[str]) -> RunRecord:
        """The record itself, or that of a folder."""
        return source if isinstance(source, RunRecord) else RunRecord(source)

    def read_ahead(self) -> None:
        """Starts to read the large tables beside what is computed: reading and unpacking leave Python to others."""
        Thread(target=self._read_large, daemon=True).start()

    def _read_large(self) -> None:
        with suppress(MootError):  # whoever needs the table gets the error
            _ = self._events, self.bookkeeping

    def once(self, compute: Callable[[Any], T]) -> T:
        """What a function of the record gives, computed once."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        found: T = self._computed[compute]
        return found

    @cached_property
    def info(self) -> RunInfo:
        """What run.yaml says."""
        return read_run_info(self.folder)

    @cached_property
    def cases(self) -> pa.Table:
        """The registered cases."""
        return read_table(self.folder, "cases", _CASES)

    @cached_property
    def turns(self) -> pa.Table:
        """Replies and persons' decisions, with the column `superseded`."""
        return read_table(self.folder, "turns", _TURNS)

    @cached_property
    def verdict_table(self) -> pa.Table:
        """The verdicts of all attempts, with the column `debated`: whether they finished after a debate.

        A debate that a gate skipped and a single answer did not.
        """
        verdicts = scored_verdicts(read_table(self.folder, "verdicts", _VERDICTS), self.folder)
        failed, how = pc.fill_null(verdicts["failed"], False), pc.fill_null(verdicts["how"], "")
        ended = pc.invert(pc.or_(failed, pc.equal(how, "skipped")))
        has_rounds = pc.greater(pc.fill_null(verdicts["rounds"], 0), 0)
        if pc.any(pc.and_(ended, pc.invert(has_rounds))).as_py():  # a debate without rounds has a gate
            has_rounds = pc.or_(has_rounds, pc.is_in(_keys(verdicts), value_set=_keys(self._gates)))
        return verdicts.append_column("debated", pc.and_(ended, has_rounds))

    @cached_property
    def debated(self) -> frozenset[CaseKey]:
        """The debates that finished after a debate; see `verdict_table`."""
        rows = self.verdict_table.filter(self.verdict_table["debated"])
        return frozenset(zip(rows["case_id"].to_pylist(), rows["attempt"].to_pylist(), strict=True))

    @cached_property
    def gated(self) -> frozenset[CaseKey]:
        """The debates in which a gate decided."""
        columns = (self._gates[name].to_pylist() for name in ("case_id", "attempt"))
        return frozenset(zip(*columns, strict=True))

    @cached_property
    def _gates(self) -> pa.Table:
        """Where gates decided, without the other events, of which a run has many."""
        return read_table(self.folder, "events", [], pc.field("kind") == GateDecided.kind)

    @cached_property
    def bookkeeping(self) -> pa.Table:
        """The events that say which asks were paid for; see `BOOKKEEPING_EVENTS`."""
        return read_table(self.folder, "events", ["data"], _is_bookkeeping())

    @cached_property
    def _events(self) -> pa.Table:
        """All other events."""
        return read_table(self.folder, "events", ["data"], ~_is_bookkeeping())

    @cached_property
    def references(self) -> References:
        """How the answers of the cases are scored."""
        return References.from_table(self.cases)

    @cached_property
    def verdicts(self) -> list[VerdictRow]:
        """The verdict of each case's latest attempt that has one, in order of case id."""
        return latest_of(self.verdict_table)

    @cached_property
    def by_case(self) -> dict[str, VerdictRow]:
        """The same by case id."""
        return {verdict.case_id: verdict for verdict in self.verdicts}

    @cached_property
    def replies(self) -> ReplyColumns:
        """Every paid or reused reply."""
        return ReplyColumns(reply_rows(self.turns))

    def has_events(self, event_type: type[DebateEvent]) -> bool:
        """Whether there is an event of this kind, of whatever form."""
        return bool(self.events_of_kind(event_type.kind).num_rows)

    def events_of_kind(self, kind: str) -> pa.Table:
        """The events of a kind."""
        return self._events.filter(pc.equal(self._events["kind"], kind))

    def typed_events(self, event_type: type[E]) -> list[tuple[EventPlace, E]]:
        """The events of a type, of all attempts; those of its kind that have another form are left out."""
        return self._kept(event_type, lambda: list(_typed(self.events_of_kind(event_type.kind), event_type)))

    def rows_that_count(self, rows: pa.Table) -> pa.Table:
        """The rows of the attempts that count; see `counted_rows`."""
        return counted_rows(rows, self.verdict_table)

    def counted_events(self, event_type: type[E]) -> list[tuple[EventPlace, E]]:
        """The events of a type in the attempts that count."""
        rows = self.events_of_kind(event_type.kind)
        counted = self.rows_that_count(rows)
        return self.typed_events(event_type) if counted is rows else list(_typed(counted, event_type))

    def payloads(self, payload_type: type[D], containing: str) -> list[tuple[CaseKey, D]]:
        """The verdicts' payloads in a type, of all attempts; those of another form are left out.

        Args:
            payload_type: the type.
            containing: a text that every payload of interest has in its JSON, so that others need not be read.
        """
        return self._kept((payload_type, containing), lambda: list(self._payloads(payload_type, containing)))

    def _payloads(self, payload_type: type[D], containing: str) -> Iterator[tuple[CaseKey, D]]:
        rows = self.verdict_table
        rows = rows.filter(pc.match_substring(pc.fill_null(rows["payload"], ""), containing))
        columns = (rows[name].to_pylist() for name in ("case_id", "attempt", "payload"))
        for case_id, attempt, payload in zip(*columns, strict=True):
            if (found := payload_type.read_json(payload)) is not None:
                yield (case_id, attempt), found

    def _kept(self, key: Any, compute: Callable[[], T]) -> T:
        if key not in self._computed:
            self._computed[key] = compute()
        found: T = self._computed[key]
        return found


def _typed(rows: pa.Table, event_type: type[E]) -> Iterator[tuple[EventPlace, E]]:
    rows = _without_other_forms(rows, event_type)
    columns = (rows[name].to_pylist() for name in ("case_id", "attempt", "path", "data"))
    for case_id, attempt, path, data in zip(*columns, strict=True):
        if (event := event_type.read_json(data or "{}", path)) is not None:
            yield EventPlace(case_id, attempt, path), event


def _without_other_forms(rows: pa.Table, event_type: type[DebateEvent]) -> pa.Table:
    """The rows without another protocol's events of the kind, if the first one is: they lack a required key."""
    first = (rows["data"][0].as_py() or "") if rows.num_rows else ""
    for name, field in event_type.model_fields.items():
        if field.is_required() and field.alias is None and f'"{name}"' not in first:
            return rows.filter(pc.match_substring(pc.fill_null(rows["data"], ""), f'"{name}"'))
    return rows


def _keys(rows: pa.Table) -> pa.Array:
    """Case and attempt of each row as one text."""
    return pc.binary_join_element_wise(rows["case_id"], rows["attempt"].cast(pa.string()), "/").combine_chunks()


def _is_bookkeeping() -> pc.Expression:
    return pc.field("kind").isin(pa.array(sorted(BOOKKEEPING_EVENTS), pa.string()))


def once_per_record(compute: Callable[[RunRecord], T]) -> Callable[[RunRecord | str | os.PathLike[str]], T]:
    """Makes a function of a record take a folder, too; of a `RunRecord` it is computed once."""

    @wraps(compute)
    def found(source: RunRecord | str | os.PathLike[str]) -> T:
        return RunRecord.of(source).once(compute)

    return found
