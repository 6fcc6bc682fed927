"""The record of a run as relations for SQL: the recorded columns, and derived ones, each defined once.

A view costs nothing until a query reads it, and then only the columns that the query reads. Rows come in no order that
a query does not ask for: `written` numbers them. Floats are to be summed outside SQL, whose sums vary with its threads.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import duckdb
import pyarrow as pa

from moot.actors.models.prices import PER_TOKENS, price_of
from moot.actors.record.rows import CUT_SUFFIX, INVALID_SUFFIX, LENGTH, OVERLONG
from moot.actors.record.schema import COLUMNS, ROWS
from moot.actors.record.store.mirror import record_path
from moot.deploy.results.events import typed_events
from moot.deploy.results.recorded_tables import ORDER, RecordedRows, RecordedTables, quoted
from moot.deploy.results.references import dependent_cases
from moot.deploy.results.run_info import RunInfo, read_run_info
from moot.protocols.errors import UNSENT, ConfigError, RecordError
from moot.protocols.events import GATE, DebateEvent

T = TypeVar("T")

_SETTINGS = {
    "threads": 2,
    "memory_limit": "'2GiB'",
    "enable_external_file_cache": "false",  # the system's cache has the files, and they would fill the memory limit
    "parquet_metadata_cache": "true",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a name in a query is never that of a Python variable
}


class FrameColumn(NamedTuple):
    """Column of a view: name, type, meaning; of a derived one, its SQL over the recorded columns."""

    name: str
    kind: pa.DataType
    meaning: str
    sql: str = ""


class View(NamedTuple):
    """View of a record: what a row is, and its columns."""

    rows: str
    columns: tuple[FrameColumn, ...]


_FLAG, _TEXT, _INT64, _FLOAT = pa.bool_(), pa.string(), pa.int64(), pa.float64()

_GROUP_NAME = FrameColumn(
    "group_name",
    _TEXT,
    "name of the group of dependent cases: those that the task puts into one, and those with equal content; null for "
    "an independent case; in two runs of the same cases a group has one name",
    "group_name",
)
_COUNTED = FrameColumn(
    "counted",
    _FLAG,
    "whether the attempt counts: the case's latest with a verdict, and every attempt of a case without a verdict",
    "coalesce(attempt = last_attempt, true)",
)
_HAS_ROUNDS = "coalesce(rounds, 0) > 0"
_HAS_ENDED = "NOT coalesce(failed, false) AND coalesce(how, '') <> 'skipped'"
_IS_UNSCORED = "correct IS NULL AND gold IS NOT NULL AND answer IS NULL AND NOT coalesce(failed, false)"
_IS_PERSONS = "coalesce(role, '') = 'person'"
_IS_REUSED = "coalesce(reused_from, '') <> ''"
_IS_FREE = "(coalesce(outcome, '') = 'failed' AND coalesce(unconfirmed_attempts, 0) = 0)"
_LACKS_USAGE = f"((prompt_tokens IS NULL OR completion_tokens IS NULL) AND NOT {_IS_FREE})"
_IS_OVERLONG = f"contains(coalesce(reading, ''), '{OVERLONG}')"

_DERIVED: dict[str, tuple[FrameColumn, ...]] = {
    "cases": (_GROUP_NAME,),
    "verdicts": (
        FrameColumn(
            "scored", _FLAG, "whether the answer can be scored: `correct` is not null", "scored_correct IS NOT NULL"
        ),
        FrameColumn(
            "latest", _FLAG, "whether it is of the case's latest attempt with a verdict", "attempt = last_attempt"
        ),
        FrameColumn(
            "finished",
            _FLAG,
            "whether it is the latest of its case, and did not fail",
            "attempt = last_attempt AND NOT coalesce(failed, false)",
        ),
        FrameColumn(
            "debated",
            _FLAG,
            "whether a debate took place and ended: false for a case that a gate skipped, and for a single answer",
            f"{_HAS_ENDED} AND ({_HAS_ROUNDS} OR has_gate)",
        ),
        _GROUP_NAME,
    ),
    "turns": (
        FrameColumn("superseded", _FLAG, "whether a later reply on the same path replaced it", "superseded"),
        _COUNTED,
        FrameColumn("person", _FLAG, "whether it is a person's decision, which costs nothing", _IS_PERSONS),
        FrameColumn(
            "reused", _FLAG, "whether it was taken from another run, so that this run did not pay for it", _IS_REUSED
        ),
        FrameColumn(
            "is_call",
            _FLAG,
            "whether this run called a model: it is no person's, not reused, and its request was sent",
            f"NOT {_IS_PERSONS} AND NOT {_IS_REUSED} AND coalesce(failure, '') <> '{UNSENT}'",
        ),
        FrameColumn(
            "lacks_usage",
            _FLAG,
            "whether the used tokens are unknown in part; a failure without a billed attempt has used none",
            _LACKS_USAGE,
        ),
        FrameColumn(
            "has_known_tokens",
            _FLAG,
            "whether the used tokens are known at least in part",
            f"prompt_tokens IS NOT NULL OR completion_tokens IS NOT NULL OR {_IS_FREE}",
        ),
        FrameColumn(
            "tokens",
            _INT64,
            "prompt and completion tokens; null unless both are known",
            "prompt_tokens::BIGINT + completion_tokens::BIGINT",
        ),
        FrameColumn(
            "step",
            _TEXT,
            "path of the ask that the reply belongs to: those of an unreadable first reply and of one that was stopped "
            "early have a suffix",
            f"if(contains(path, '~'), regexp_replace(path, '({INVALID_SUFFIX})?({CUT_SUFFIX}[0-9]+)?$', ''), path)",
        ),
        FrameColumn(
            "truncated",
            _FLAG,
            "whether the server truncated it at its token limit",
            f"coalesce(finish_reason, '') = '{LENGTH}' AND NOT {_IS_OVERLONG}",
        ),
        FrameColumn(
            "overlong", _FLAG, "whether it was longer than the requested tokens can be, and was cut", _IS_OVERLONG
        ),
        FrameColumn(
            "usage_estimated",
            _FLAG,
            "whether a token count is an estimate, because the server reported too few",
            "prompt_tokens_stated IS NOT NULL OR completion_tokens_stated IS NOT NULL",
        ),
        FrameColumn(
            "cost_usd",
            _FLOAT,
            "cost in USD at the run's prices; null if the used tokens or the model's price are unknown",
            f"if({_LACKS_USAGE}, NULL, coalesce(prompt_tokens, 0)::DOUBLE * usd_per_prompt_token"
            " + coalesce(completion_tokens, 0)::DOUBLE * usd_per_completion_token)",
        ),
    ),
    "events": (_COUNTED,),
    "judgments": (_COUNTED,),
    "tokens": (),
}

_WRITTEN = FrameColumn("written", _INT64, "number of the row in the order of writing, with gaps", "written")

_REPLACED = {
    ("verdicts", "correct"): FrameColumn(
        "correct",
        _FLAG,
        "whether the answer is right, by the rule of today: a verdict without an answer is wrong; null where it cannot "
        "be scored",
        "scored_correct",
    )
}


def _columns(name: str) -> tuple[FrameColumn, ...]:
    recorded = [FrameColumn(column.name, column.kind, column.meaning, f'"{column.name}"') for column in COLUMNS[name]]
    return (*(_REPLACED.get((name, column.name), column) for column in recorded), *_DERIVED[name], _WRITTEN)


VIEWS: dict[str, View] = {name: View(ROWS[name], _columns(name)) for name in _DERIVED}
"""The views, with all their columns."""


class Frames:
    """Record of a run, opened once: views of its tables, and what was computed from them.

    Each table is as of the first query that reads it. Methods may be called from several threads.

    Args:
        folder: the run's folder, or its URI.

    Attributes:
        folder: the local folder; for a URI, that of its copy.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder: Path = record_path(folder)
        self._computed: dict[Any, Any] = {}
        self._lock = RLock()
        self._views: dict[str, bool] = {}

    @classmethod
    def of(cls, source: Frames | str | os.PathLike[str]) -> Frames:
        """Frames of a folder; frames are returned unchanged."""
        return source if isinstance(source, Frames) else cls(source)

    def once(self, compute: Callable[[Any], T]) -> T:
        """Result of a function of the frames, computed once."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        result: T = self._computed[compute]
        return result

    @cached_property
    def info(self) -> RunInfo:
        """Content of run.yaml and epochs.json."""
        return read_run_info(self.folder)

    def sql(self, query: str, **parameters: Any) -> pa.Table:
        """Rows of a query over the views.

        Args:
            query: one `SELECT`; it states the order of its rows, if that matters.
            parameters: values of `$name` in it.

        Raises:
            ConfigError: the query is not one `SELECT`, or is wrong.
            RecordError: the record cannot be read.
        """
        with self._lock:
            while True:
                try:
                    return self._selected(query, parameters)
                except duckdb.CatalogException as error:  # a view is made for the first query that names it
                    missing = _NO_TABLE.search(str(error))
                    name = missing[1].lower() if missing else ""
                    if name not in VIEWS or name in self._views:
                        raise ConfigError(_first_lines(error)) from None
                    self._make(name)
                except (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.InvalidInputException) as error:
                    raise RecordError(f"{self.folder} cannot be read: {_first_lines(error)}") from error
                except duckdb.Error as error:
                    raise ConfigError(_first_lines(error)) from None

    def table(
        self, view: str, columns: Sequence[str] | None = None, where: str = "true", **parameters: Any
    ) -> pa.Table:
        """Rows of a view with the types of the record, in the order of `read_table`.

        Args:
            view: a name of `VIEWS`.
            columns: names; all when None.
            where: condition in SQL.
            parameters: values of `$name` in it.

        Raises:
            ConfigError, RecordError: see `sql`.
        """
        with self._lock:
            if view not in self._views:
                self._make(view)
        by_name = {column.name: column for column in VIEWS[view].columns}
        chosen = [by_name[name] for name in (by_name if columns is None else columns)]
        names = ", ".join(f'"{column.name}"' for column in chosen)
        order = "" if self._views[view] else f"ORDER BY {ORDER.get(view, 'written')}"
        rows = self.sql(f"SELECT {names} FROM {view} WHERE {where} {order}", **parameters)
        return rows.cast(pa.schema([(column.name, column.kind) for column in chosen]))

    def events_of(
        self,
        event_type: type[DebateEvent],
        columns: Sequence[str] | None = None,
        where: str = "true",
        **parameters: Any,
    ) -> pa.Table:
        """Events of a type as typed columns, of all attempts, in the order of `read_table`; see `typed_events`.

        Events of its kind with another form are left out.

        Args:
            event_type: the type.
            columns: names of its fields; all when None. `case_id`, `attempt`, `path` and `counted` come first.
            where: condition in SQL on these four.
            parameters: values of `$name` in it.

        Raises:
            ConfigError, RecordError: see `sql`.
        """
        return self.sql(typed_events(event_type, columns, where), **parameters)

    def _selected(self, query: str, parameters: Mapping[str, Any]) -> pa.Table:
        statements = self._database.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ConfigError("a query is one SELECT")
        return self._database.sql(query, params=dict(parameters) or None).to_arrow_table()

    @cached_property
    def _database(self) -> duckdb.DuckDBPyConnection:
        return _in_memory().cursor()

    @cached_property
    def _tables(self) -> RecordedTables:
        return RecordedTables(self.folder, self._database)

    def _make(self, name: str) -> None:
        """Make a view. What other tables have of a column is joined only if this record has any of it."""
        recorded = self._tables.rows(name)
        sources = {
            "cases": (self._group_name,),
            "verdicts": (self._group_name, self._last_attempt, self._has_gate, self._correct),
            "turns": (self._last_attempt, self._usd_per_token),
            "events": (self._last_attempt,),
            "judgments": (self._last_attempt,),
        }
        joins, values = "", ""
        for source in sources.get(name, ()):
            value, join = source(recorded)
            values, joins = f"{values}, {value}", f"{joins} {join}".strip()
        columns = ", ".join(f'{column.sql} AS "{column.name}"' for column in VIEWS[name].columns)
        rows = f"SELECT recorded.*{values} FROM ({recorded.sql}) AS recorded {joins}"
        self._database.execute(f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM ({rows})")
        self._views[name] = recorded.is_in_order and not joins

    def _group_name(self, recorded: RecordedRows) -> tuple[str, str]:
        if not self._has_groups:
            return "NULL::VARCHAR AS group_name", ""
        return "group_name", "LEFT JOIN case_groups ON case_groups.case_id = recorded.case_id"

    @cached_property
    def _has_groups(self) -> bool:
        """Whether cases are dependent; then the table `case_groups` names the group of each of them."""
        cases = self._database.sql(
            """SELECT case_id, coalesce(content_hash, '') AS content, coalesce("group", '') AS given """
            f"FROM ({self._tables.rows('cases').sql}) ORDER BY written"
        ).to_arrow_table()
        groups = dependent_cases(cases)
        if groups.num_rows:
            self._database.register("dependent_cases", groups)
            self._database.execute(
                "CREATE TEMP TABLE case_groups AS SELECT case_id, min(if(given <> '', 'group ' || given, "
                "'text ' || content)) OVER (PARTITION BY number) AS group_name FROM dependent_cases"
            )
        return bool(groups.num_rows)

    def _last_attempt(self, recorded: RecordedRows) -> tuple[str, str]:
        verdicts = self._tables.rows("verdicts")
        if not recorded.last_attempt and not verdicts.last_attempt:
            return "attempt AS last_attempt", ""
        self._database.execute(
            "CREATE TEMP TABLE IF NOT EXISTS last_attempts AS "
            f"SELECT case_id, max(attempt) AS last_attempt FROM ({verdicts.sql}) GROUP BY case_id"
        )
        return "last_attempt", "LEFT JOIN last_attempts ON last_attempts.case_id = recorded.case_id"

    def _has_any_verdict(self, condition: str) -> bool:
        verdicts = self._tables.rows("verdicts").sql
        return bool(self._database.execute(f"SELECT 1 FROM ({verdicts}) WHERE {condition} LIMIT 1").fetchall())

    def _has_gate(self, recorded: RecordedRows) -> tuple[str, str]:
        """Whether a gate decided on a debate; asked of the events only if a debate without rounds has ended."""
        if not self._has_any_verdict(f"{_HAS_ENDED} AND NOT {_HAS_ROUNDS}"):
            return "false AS has_gate", ""
        events = self._tables.rows("events").sql
        self._database.execute(
            f"CREATE TEMP TABLE gates AS SELECT DISTINCT case_id, attempt FROM ({events}) WHERE kind = '{GATE}'"
        )
        return "(recorded.case_id, recorded.attempt) IN (FROM gates) AS has_gate", ""

    def _correct(self, recorded: RecordedRows) -> tuple[str, str]:
        """Older records have null for a verdict without an answer. It is wrong, unless the case is a reply to judge."""
        if not self._has_any_verdict(_IS_UNSCORED):
            return "correct AS scored_correct", ""
        cases = self._tables.rows("cases").sql
        is_debated = f"recorded.case_id NOT IN (SELECT case_id FROM ({cases}) WHERE judged IS NOT NULL)"
        return f"if({_IS_UNSCORED} AND {is_debated}, false, correct) AS scored_correct", ""

    def _usd_per_token(self, recorded: RecordedRows) -> tuple[str, str]:
        models = self._database.execute(f"SELECT DISTINCT coalesce(model, '') FROM ({recorded.sql})").fetchall()
        priced = {model: price for (model,) in models if (price := price_of(model, self.info.prices)) is not None}
        prompt = {model: price.input / PER_TOKENS for model, price in priced.items()}
        completion = {model: price.output / PER_TOKENS for model, price in priced.items()}
        return f"{_by_model(prompt)} AS usd_per_prompt_token, {_by_model(completion)} AS usd_per_completion_token", ""


@cache
def _in_memory() -> duckdb.DuckDBPyConnection:
    """Database of this process. Each cursor has its own views and tables, which are temporary."""
    database = duckdb.connect(":memory:")
    spill = Path(tempfile.gettempdir(), f"moot-query-{uuid4().hex}")
    for name, value in {**_SETTINGS, "temp_directory": quoted(str(spill))}.items():
        database.execute(f"SET {name} = {value}")
    return database


def _by_model(usd: Mapping[str, float]) -> str:
    cases = " ".join(f"WHEN {quoted(model)} THEN '{value!r}'::DOUBLE" for model, value in usd.items())
    return f"CASE coalesce(model, '') {cases} END" if usd else "NULL::DOUBLE"


_NO_TABLE = re.compile(r"Table with name \"?(\w+)\"? does not exist")


def _first_lines(error: Exception) -> str:
    """Message of DuckDB without its picture of the query."""
    return " ".join(str(error).partition("\n\nLINE ")[0].split())
