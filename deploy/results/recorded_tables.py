"""Tables of a record as DuckDB relations with the rows that `read_table` gives, read a column at a time.

Parts are scanned where they lie. What a journal still holds is an Arrow table over the mapped segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from moot.actors.record.compaction import chunked, rows_of, stream_of
from moot.actors.record.completeness import complete_segments
from moot.actors.record.folder import RunFolder
from moot.actors.record.parts import read_part
from moot.actors.record.roll_files import Part
from moot.actors.record.rows import INVALID_SUFFIX
from moot.actors.record.schema import BOOKKEEPING_EVENTS, JOURNAL, KEYS, TABLES, completed
from moot.actors.record.segments import read_segment
from moot.protocols.errors import RecordError

_ROWS_BITS = 32
"""Bits of `written` that number the rows of a part or of a segment."""


def quoted(text: str) -> str:
    """Text in SQL."""
    return "'" + text.replace("'", "''") + "'"


_IS_BOOKKEEPING = f"coalesce(kind IN ({', '.join(map(quoted, sorted(BOOKKEEPING_EVENTS)))}), false)"

ORDER: dict[str, str] = {"turns": "superseded, written", "events": f'{_IS_BOOKKEEPING}, "at", written'}
"""Order in which `read_table` gives the rows of a table; of the others, the order of writing."""

_Batches = list[pa.RecordBatch]


class _File(NamedTuple):
    """Parquet file of a part in the order of pieces."""

    number: int
    path: Path
    names: tuple[str, ...]


class RecordedRows(NamedTuple):
    """Rows of a table, each that counts once.

    Attributes:
        sql: query of them, with the columns of the record and `written`, the number of a row in the order of writing;
            of `turns`, with `superseded`, too.
        is_in_order: whether they come in the order of `read_table` without being sorted.
        last_attempt: the largest number of an attempt; 0 without rows.
    """

    sql: str
    is_in_order: bool
    last_attempt: int


class RecordedTables:
    """Tables of a run's record, each read when it is first asked for.

    Each journal stream is as of the first time that one of its tables is asked for.

    Args:
        folder: the run's folder.
        database: keeps what the queries need, for this connection alone.

    Raises:
        RecordError: the folder has no run.
    """

    def __init__(self, folder: Path, database: duckdb.DuckDBPyConnection) -> None:
        self._folder, self._database = RunFolder(folder), database
        if not self._folder.exists():
            raise RecordError(self._folder.missing())
        self._pieces: dict[str, list[Part | _Batches]] = {}
        self._rows: dict[str, RecordedRows] = {}

    def rows(self, table: str) -> RecordedRows:
        """Rows of a table.

        Raises:
            RecordError: the record is damaged or cannot be read.
        """
        if table not in self._rows:
            self._rows[table] = self._found(table)
        return self._rows[table]

    def _found(self, table: str) -> RecordedRows:
        rows, is_replaced = self._raw(table), False
        if table == "turns":
            is_replaced = self._superseded(table, rows)
            is_in = "coalesce(reply_id IN (FROM superseded_turns), false)" if is_replaced else "false"
            rows = f"SELECT *, {is_in} AS superseded FROM ({rows})"
        elif table in ("tokens", "judgments") and not (turns := self.rows("turns")).is_in_order:
            is_replaced = self._superseded(table, turns.sql)
            if is_replaced:
                rows = f"FROM ({rows}) WHERE NOT coalesce(reply_id IN (FROM superseded_{table}), false)"
        is_repeated, last_attempt = self._repeated(table, rows)
        if is_repeated:
            rows = f"FROM ({rows}) ANTI JOIN repeated_{table} USING (written)"
        return RecordedRows(rows, not is_replaced and not is_repeated and table != "events", last_attempt)

    def _superseded(self, table: str, turns: str) -> bool:
        """Make a table of the ids of superseded replies and of their unparsable first replies; whether it has any."""
        replaced = self._read(f"SELECT DISTINCT supersedes AS id FROM ({turns}) WHERE supersedes IS NOT NULL")
        ids = replaced["id"].combine_chunks()
        if len(ids):
            self._keep(f"superseded_{table}", pa.table({"id": pa.concat_arrays([ids, _of_first_replies(ids)])}))
        return bool(len(ids))

    def _repeated(self, table: str, rows: str) -> tuple[bool, int]:
        """Make a table of the rows that another one of their key replaces; whether it has any, and the last attempt.

        Keys are unique in most records, which a sort of their hashes shows faster than any grouping.
        """
        key, order = _identity(table), _preference(table)
        attempt = "attempt" if "attempt" in KEYS[table] else "0::SMALLINT"
        keys = self._database.execute(f"SELECT hash({key}) AS h, {attempt} AS attempt FROM ({rows})").fetchnumpy()
        hashes, last_attempt = keys["h"], int(keys["attempt"].max(initial=0))
        hashes.sort()
        several = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        if not len(several):
            return False, last_attempt
        self._keep("several", pa.table({"h": several}))
        repeated = self._read(
            f"SELECT written FROM (FROM ({rows}) WHERE hash({key}) IN (FROM several)) "
            f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {order}) > 1"
        )
        self._keep(f"repeated_{table}", repeated)
        return bool(repeated.num_rows), last_attempt

    def _read(self, query: str) -> pa.Table:
        return self._database.sql(query).to_arrow_table()

    def _keep(self, name: str, rows: pa.Table) -> None:
        self._database.register(name, rows)

    def _raw(self, table: str) -> str:
        """Query of all rows of a table as they were written, of parts and of the journal."""
        files: list[_File] = []
        arrow: list[pa.Table] = []
        for number, piece in enumerate(self._pieces_of(stream_of(table))):
            if isinstance(piece, list):
                arrow.append(_numbered(_of_journal(table, piece), number))
            elif table in piece.tables:
                path = self._folder.table_file(piece, table)
                if table in piece.checksums:
                    files.append(_File(number, path, _column_names(path)))
                else:  # of earlier versions: the reader of parts verifies each page
                    arrow.append(_numbered(_complete(read_part(path, TABLES[table].names), table), number))
        queries = [_scan(run, table) for run in _runs(files)]
        if arrow or not queries:
            empty = _numbered(TABLES[table].empty_table(), 0)
            self._keep(f"journal_{table}", pa.concat_tables([empty, *arrow]))
            queries.append(f"SELECT * FROM journal_{table}" + " WHERE token IS NOT NULL" * (table == "tokens"))
        return " UNION ALL ".join(queries)

    def _pieces_of(self, stream: str) -> list[Part | _Batches]:
        """Parts, then segments, which are listed first: what becomes a part meanwhile is read twice, never missed."""
        if stream not in self._pieces:
            segments, pieces = complete_segments(self._folder, stream), list[Part | _Batches]()
            pieces += self._folder.committed_parts()
            for segment in segments:
                try:
                    pieces.append(list(read_segment(*segment)))
                except FileNotFoundError:  # a live run has just turned it into a part
                    pieces += [part for part in self._folder.committed_parts() if part not in pieces]
            self._pieces[stream] = pieces
        return self._pieces[stream]


def _of_first_replies(ids: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(ids, INVALID_SUFFIX, "")


def _identity(table: str) -> str:
    """What rows of which one counts have in common; see `KEYS`."""
    key = [f'"{name}"' for name in KEYS[table]]
    if table == "turns":  # of a superseded reply every version stays
        return "superseded, if(superseded, reply_id, case_id), if(superseded, 0, attempt), if(superseded, '', path)"
    if table == "events":  # equal notes at the same time are duplicates
        key.append(f'if({_IS_BOOKKEEPING}, "at", 0)')
    return ", ".join(key)


def _preference(table: str) -> str:
    """Order of equal rows in which the one that counts comes first."""
    if table != "events":
        return "written"
    return f'"at" DESC NULLS FIRST, if({_IS_BOOKKEEPING}, written, -written)'


def _runs(files: Sequence[_File]) -> list[list[_File]]:
    """Runs of files with consecutive numbers and equal columns."""
    runs = groupby(enumerate(files), key=lambda each: (each[1].number - each[0], each[1].names))
    return [[file for _, file in run] for _, run in runs]


def _scan(files: Sequence[_File], table: str) -> str:
    """Query of a run of files; columns newer than the files are null."""
    there = files[0].names
    values = {field.name: f'"{field.name}"' if field.name in there else "NULL" for field in TABLES[table]}
    columns = ", ".join(
        f'CAST({values[field.name]} AS {sql_type(field.type)}) AS "{field.name}"' for field in TABLES[table]
    )
    paths = ", ".join(_quoted_path(file.path) for file in files)
    written = f"((file_index + {files[0].number})::BIGINT << {_ROWS_BITS}) + file_row_number AS written"
    return f"SELECT {columns}, {written} FROM read_parquet([{paths}], hive_partitioning = false)"


def _quoted_path(path: Path) -> str:
    """Path in SQL, of this one file: characters of patterns stand for themselves."""
    text = "".join(f"[{each}]" if each in "*?[" else each for each in str(path.absolute()))
    return quoted(text)


def _column_names(path: Path) -> tuple[str, ...]:
    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error


def _numbered(rows: pa.Table, number: int) -> pa.Table:
    written = (number << _ROWS_BITS) + np.arange(rows.num_rows, dtype=np.int64)
    return rows.append_column("written", pa.array(written))


def _complete(rows: pa.Table, table: str) -> pa.Table:
    return pa.Table.from_batches([completed(batch, TABLES[table]) for batch in rows.to_batches()], TABLES[table])


def _of_journal(table: str, batches: _Batches) -> pa.Table:
    """Rows of a table in a segment. Columns are not copied: they lie in the mapped file until a query reads them."""
    if table == "judgments":
        empty = TABLES[table].empty_table()
        return pa.concat_tables([empty, *(rows_of(table, chunk) for chunk in chunked(batches))])
    schema = JOURNAL[stream_of(table)]
    rows = pa.Table.from_batches([completed(batch, schema) for batch in batches], schema)
    return rows.select(TABLES[table].names).cast(TABLES[table])


def sql_type(kind: pa.DataType) -> str:
    """DuckDB's name of a type of the record."""
    return f"{sql_type(kind.value_type)}[]" if pa.types.is_list(kind) else _SQL_TYPES[kind]


_SQL_TYPES: dict[Any, str] = {
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
}
