"""Record of a run for figures: each table is read once, as columns."""

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
from moot.deploy.results.record.readers import counted_rows, latest_of, reply_rows, withdrawn_cases
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
_TURNS += ["unconfirmed_tokens_max", "logprob_stage", "server", "served_model"]
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
    """Record of a run; tables and results are cached, so that all figures have the same data.

    Args:
        folder: the run's folder, or its URI.

    Attributes:
        folder: the local folder; for a URI, that of its copy.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = record_path(folder)
        self._computed: dict[Any, Any] = {}

    @classmethod
    def of(cls, source: RunRecord | str | os.PathLike[str]) -> RunRecord:
        """Record of a folder; a record is returned unchanged."""
        return source if isinstance(source, RunRecord) else RunRecord(source)

    def read_ahead(self) -> None:
        """Starts to read the large tables in a thread; reading and decompressing release the GIL."""
        Thread(target=self._read_large, daemon=True).start()

    def _read_large(self) -> None:
        with suppress(MootError):  # the next access to the table raises the error
            _ = self._events, self.bookkeeping

    def once(self, compute: Callable[[Any], T]) -> T:
        """Result of a function of the record, computed once."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        found: T = self._computed[compute]
        return found

    @cached_property
    def info(self) -> RunInfo:
        """Content of run.yaml and epochs.json."""
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
        """The verdicts of all attempts, with the column `debated`: whether a debate took place and finished.

        It is False for a case that a gate skipped, and for a single answer.
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
        """Keys of the cases that were debated; see `verdict_table`."""
        rows = self.verdict_table.filter(self.verdict_table["debated"])
        return frozenset(zip(rows["case_id"].to_pylist(), rows["attempt"].to_pylist(), strict=True))

    @cached_property
    def gated(self) -> frozenset[CaseKey]:
        """Keys of the cases on which a gate decided."""
        columns = (self._gates[name].to_pylist() for name in ("case_id", "attempt"))
        return frozenset(zip(*columns, strict=True))

    @cached_property
    def _gates(self) -> pa.Table:
        """Events of gates without their data, read without the other events, which are many."""
        return read_table(self.folder, "events", [], pc.field("kind") == GateDecided.kind)

    @cached_property
    def bookkeeping(self) -> pa.Table:
        """Events of the bookkeeping of paid asks and of cancelled debates; see `BOOKKEEPING_EVENTS`."""
        return read_table(self.folder, "events", ["data"], _is_bookkeeping())

    @cached_property
    def withdrawn(self) -> frozenset[str]:
        """Ids of the cases without a verdict that were withdrawn; see `withdrawn_cases`."""
        return frozenset(withdrawn_cases(self.bookkeeping).difference(self.by_case))

    @cached_property
    def _events(self) -> pa.Table:
        """All other events."""
        return read_table(self.folder, "events", ["data"], ~_is_bookkeeping())

    @cached_property
    def references(self) -> References:
        """References of the cases."""
        return References.from_table(self.cases)

    @cached_property
    def verdicts(self) -> list[VerdictRow]:
        """Verdict of each case's latest attempt with one, in order of case id."""
        return latest_of(self.verdict_table)

    @cached_property
    def by_case(self) -> dict[str, VerdictRow]:
        """Verdict of each case's latest attempt with one, by case id."""
        return {verdict.case_id: verdict for verdict in self.verdicts}

    @cached_property
    def replies(self) -> ReplyColumns:
        """Every paid or reused reply."""
        return ReplyColumns(reply_rows(self.turns))

    def has_events(self, event_type: type[DebateEvent]) -> bool:
        """Whether there is an event of this kind, in any form."""
        return bool(self.events_of_kind(event_type.kind).num_rows)

    def events_of_kind(self, kind: str) -> pa.Table:
        """The events of a kind."""
        return self._events.filter(pc.equal(self._events["kind"], kind))

    def typed_events(self, event_type: type[E]) -> list[tuple[EventPlace, E]]:
        """Events of a type, of all attempts; events of its kind with another form are skipped."""
        return self._cached(event_type, lambda: list(_typed(self.events_of_kind(event_type.kind), event_type)))

    def rows_that_count(self, rows: pa.Table) -> pa.Table:
        """Rows of the attempts that count; see `counted_rows`."""
        return counted_rows(rows, self.verdict_table)

    def counted_events(self, event_type: type[E]) -> list[tuple[EventPlace, E]]:
        """Events of a type in the attempts that count; see `counted_rows`."""
        rows = self.events_of_kind(event_type.kind)
        counted = self.rows_that_count(rows)
        return self.typed_events(event_type) if counted is rows else list(_typed(counted, event_type))

    def payloads(self, payload_type: type[D], containing: str) -> list[tuple[CaseKey, D]]:
        """Payloads of verdicts parsed as a type, of all attempts; payloads of another form are skipped.

        Args:
            payload_type: the type.
            containing: a text in the JSON of every payload of interest; payloads without it are not parsed.
        """
        return self._cached((payload_type, containing), lambda: list(self._payloads(payload_type, containing)))

    def _payloads(self, payload_type: type[D], containing: str) -> Iterator[tuple[CaseKey, D]]:
        rows = self.verdict_table
        rows = rows.filter(pc.match_substring(pc.fill_null(rows["payload"], ""), containing))
        columns = (rows[name].to_pylist() for name in ("case_id", "attempt", "payload"))
        for case_id, attempt, payload in zip(*columns, strict=True):
            if (found := payload_type.read_json(payload)) is not None:
                yield (case_id, attempt), found

    def _cached(self, key: Any, compute: Callable[[], T]) -> T:
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
    """Rows with a required key of the type, if the first row lacks it; the others are another protocol's events."""
    first = (rows["data"][0].as_py() or "") if rows.num_rows else ""
    for name, field in event_type.model_fields.items():
        if field.is_required() and field.alias is None and f'"{name}"' not in first:
            return rows.filter(pc.match_substring(pc.fill_null(rows["data"], ""), f'"{name}"'))
    return rows


def _keys(rows: pa.Table) -> pa.Array:
    """Key of each row as one text: `case_id/attempt`."""
    return pc.binary_join_element_wise(rows["case_id"], rows["attempt"].cast(pa.string()), "/").combine_chunks()


def _is_bookkeeping() -> pc.Expression:
    return pc.field("kind").isin(pa.array(sorted(BOOKKEEPING_EVENTS), pa.string()))


def once_per_record(compute: Callable[[RunRecord], T]) -> Callable[[RunRecord | str | os.PathLike[str]], T]:
    """Decorator: a function of a record accepts a folder, too, and is computed once for each `RunRecord`."""

    @wraps(compute)
    def found(source: RunRecord | str | os.PathLike[str]) -> T:
        return RunRecord.of(source).once(compute)

    return found
