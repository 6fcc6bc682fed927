"""Record of a run for the figures that have not moved to `Frames`: whole tables, and lists of rows."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, wraps
from pathlib import Path
from threading import Thread
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.debate_result import WITHDRAWN
from moot.actors.record.rows import OVERLONG, truncated_rows, used_nothing
from moot.actors.record.schema import BOOKKEEPING_EVENTS, CANCELLED, RESUMED, CaseKey
from moot.actors.record.tables import read_table
from moot.deploy.results.frames import Frames
from moot.deploy.results.references import References, scored_verdicts
from moot.protocols.errors import UNSENT, ConfigError, MootError
from moot.protocols.events import DebateEvent, EventData
from moot.protocols.selene.events import GateDecided


class RecordedEvent(Protocol):
    """Recorded event before it is parsed as its type."""

    @property
    def kind(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...


class ReplyRow(NamedTuple):
    """Row of `turns` with the columns that figures need.

    Attributes:
        prompt, completion: billed tokens; None when the server did not report them.
        reused: whether it was taken from another run, so that this run did not pay for it.
        superseded: whether a later reply on the same path replaced it.
        unconfirmed: attempts that may have been billed although the server reported no usage.
        unconfirmed_tokens: upper bound of their tokens.
        received: estimate of the received tokens of a reply that was stopped early; None for any other.
        estimated: whether `prompt` or `completion` is an estimate, because the server reported too few.
        truncated: whether it was truncated at its token limit.
        overlong: whether it was longer than the requested tokens can be, and was cut.
    """

    case_id: str
    attempt: int
    path: str
    role: str
    model: str
    outcome: str
    failure: str
    prompt: int | None
    completion: int | None
    reused: bool
    superseded: bool
    unconfirmed: int = 0
    unconfirmed_tokens: int = 0
    received: int | None = None
    estimated: bool = False
    truncated: bool = False
    overlong: bool = False

    @property
    def key(self) -> CaseKey:
        """Case id and attempt."""
        return (self.case_id, self.attempt)

    @property
    def is_call(self) -> bool:
        """Whether this run called a model for the reply: it was not reused, and its request was sent."""
        return not self.reused and self.failure != UNSENT

    @property
    def tokens(self) -> int | None:
        """Billed tokens; None unless both parts are known."""
        return None if self.prompt is None or self.completion is None else self.prompt + self.completion


class EventPlace(NamedTuple):
    """Place of an event in a run: case, attempt and path."""

    case_id: str
    attempt: int
    path: str

    @property
    def key(self) -> CaseKey:
        """Case id and attempt."""
        return (self.case_id, self.attempt)


class EventRow(NamedTuple):
    """Row of `events`."""

    case_id: str
    attempt: int
    kind: str
    path: str
    data: dict[str, Any]

    @property
    def key(self) -> CaseKey:
        """Case id and attempt."""
        return (self.case_id, self.attempt)


class VerdictRow(NamedTuple):
    """Row of `verdicts` with the columns that figures need.

    It is not a `DebateResult`: figures read every verdict of a run, and the payloads and distributions of a million
    verdicts would take gigabytes.

    Attributes:
        correct: whether the answer is right; None when it cannot be scored, see `scored_verdicts`.
        at: Unix time of the verdict.
    """

    case_id: str
    attempt: int
    answer: str | None
    how: str
    rounds: int
    failed: bool
    failure: str
    gold: str | None
    correct: bool | None
    at: float

    @property
    def key(self) -> CaseKey:
        """Case id and attempt."""
        return (self.case_id, self.attempt)


R = TypeVar("R", bound=RecordedEvent)
E = TypeVar("E", bound=DebateEvent)


_REPLY_TEXTS = ["role", "model", "outcome", "failure"]
_REPLY_COLUMNS = ["prompt_tokens", "completion_tokens", "reused_from", "finish_reason", "completion_tokens_estimate"]
_REPLY_COLUMNS += ["unconfirmed_attempts", "unconfirmed_tokens_max", "prompt_tokens_stated", "completion_tokens_stated"]
_REPLY_COLUMNS += ["reading"]


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
        "truncated": truncated_rows(table),
        "overlong": pc.match_substring(pc.fill_null(table["reading"], ""), OVERLONG),
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


Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class CodedTexts(NamedTuple):
    """Column of repeated texts: an index of each row in the list of distinct texts."""

    codes: Ints
    texts: list[str]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> CodedTexts:
        """Coded texts of a column without nulls."""
        encoded = column.combine_chunks().dictionary_encode()
        return cls(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist())

    def that(self, holds: Callable[[str], bool]) -> Flags:
        """Mask of the rows whose text has a property; `holds` is called once for each distinct text."""
        return np.array([holds(text) for text in self.texts], np.bool_)[self.codes]

    def counted(self, rows: Flags) -> dict[str, int]:
        """Counts of the texts among some rows, sorted by text."""
        counts = np.bincount(self.codes[rows], minlength=len(self.texts)).tolist()
        return {text: n for text, n in sorted(zip(self.texts, counts, strict=True)) if n}


class ReplyColumns:
    """Replies of a record as columns, a row for each reply.

    Args:
        table: a table with the fields of `ReplyRow` as columns.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def rows(self, some: Flags | None = None) -> list[ReplyRow]:
        """The replies as rows, or those of a mask."""
        table = self._table if some is None else self._table.filter(pa.array(some))
        columns = (table[name].to_pylist() for name in ReplyRow._fields)
        return list(map(ReplyRow._make, zip(*columns, strict=True)))

    @property
    def places(self) -> pa.Table:
        """Case id, attempt and path of each reply."""
        return self._table.select(["case_id", "attempt", "path"])

    @cached_property
    def case(self) -> CodedTexts:
        """Case id of each reply."""
        return CodedTexts.of(self._table["case_id"])

    @cached_property
    def path(self) -> CodedTexts:
        """Path of each reply."""
        return CodedTexts.of(self._table["path"])

    @cached_property
    def model(self) -> CodedTexts:
        """Model of each reply."""
        return CodedTexts.of(self._table["model"])

    @cached_property
    def outcome(self) -> CodedTexts:
        """Outcome of each reply."""
        return CodedTexts.of(self._table["outcome"])

    @cached_property
    def failure(self) -> CodedTexts:
        """Kind of failure of each reply; empty without one."""
        return CodedTexts.of(self._table["failure"])

    @cached_property
    def attempt(self) -> Ints:
        """Attempt of each reply."""
        return self.count("attempt")

    @cached_property
    def is_call(self) -> Flags:
        """Whether a model was called for each reply; see `ReplyRow.is_call`."""
        return ~self.flag("reused") & self.failure.that(lambda failure: failure != UNSENT)

    @cached_property
    def is_failed(self) -> Flags:
        """Whether the ask of each row had no usable reply."""
        return self.outcome.that(lambda outcome: outcome == "failed")

    @cached_property
    def known_tokens(self) -> Ints:
        """Known tokens of each reply, with 0 for an unknown part."""
        return self.count("prompt") + self.count("completion")

    @cached_property
    def has_tokens(self) -> Flags:
        """Whether both parts of the tokens are known."""
        return self.is_known("prompt") & self.is_known("completion")

    @cached_property
    def lacks_usage(self) -> Flags:
        """Whether the usage of each reply is unknown in part; a failure without a billed attempt has used nothing."""
        return ~self.has_tokens & ~used_nothing(self.is_failed, self.count("unconfirmed"))

    def flag(self, name: str) -> Flags:
        """Column of truth values, with False for null."""
        return self._numbers(name, False).astype(np.bool_)

    def count(self, name: str) -> Ints:
        """Column of whole numbers, with 0 for null."""
        return self._numbers(name, 0).astype(np.int64)

    def is_known(self, name: str) -> Flags:
        """Whether each number of a column is known."""
        return np.asarray(self._table[name].is_valid().to_numpy(), np.bool_)

    def _numbers(self, name: str, unknown: Any) -> npt.NDArray[Any]:
        return np.asarray(pc.fill_null(self._table[name], unknown).to_numpy())


T = TypeVar("T")
D = TypeVar("D", bound=EventData)

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


class RunRecord(Frames):
    """Frames of a run with whole tables and lists of rows, for figures that have not moved to `Frames` yet."""

    @classmethod
    def of(cls, source: Frames | str | os.PathLike[str]) -> RunRecord:
        """Record of a folder; a record is returned unchanged."""
        return source if isinstance(source, RunRecord) else cls(source.folder if isinstance(source, Frames) else source)

    def read_ahead(self) -> None:
        """Starts to read the large tables in a thread; reading and decompressing release the GIL."""
        Thread(target=self._read_large, daemon=True).start()

    def _read_large(self) -> None:
        with suppress(MootError):  # the next access to the table raises the error
            _ = self._events, self.bookkeeping

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

    def without_verdict(self, case_id: str) -> Literal["open", "withdrawn"]:
        """State of a case that has no verdict."""
        return "withdrawn" if case_id in self.withdrawn else "open"

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


def once_per_record(compute: Callable[..., T]) -> Callable[[Frames | str | os.PathLike[str]], T]:
    """Decorator: a function of a record accepts a folder, too, and is computed once for each record."""

    @wraps(compute)
    def found(source: Frames | str | os.PathLike[str]) -> T:
        return (source if isinstance(source, Frames) else RunRecord(source)).once(compute)

    return found
