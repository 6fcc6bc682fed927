"""Reader of a record's tables, for a run that is finished or not, live or torn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.compaction import chunked, rows_of, stream_of
from moot.actors.record.completeness import complete_segments
from moot.actors.record.folder import RunFolder, Segment
from moot.actors.record.parts import Groups, read_groups, read_part, read_rows
from moot.actors.record.rows import INVALID_SUFFIX
from moot.actors.record.schema import BOOKKEEPING_EVENTS, KEYS, TABLES
from moot.actors.record.segments import read_segment
from moot.protocols.errors import RecordError, unknown_name


def read_table(
    folder: RunFolder | str | Path,
    table: str,
    columns: Sequence[str] | None = None,
    only: pc.Expression | None = None,
    groups: Groups | None = None,
) -> pa.Table:
    """Reads a table of the record: committed Parquet parts plus the journal.

    Of several rows with one key, the first that no later row supersedes is kept; of events the last. `turns` has an
    extra column `superseded`, and keeps superseded rows.

    Args:
        folder: the run's folder.
        table: a name of `schema.TABLES`.
        columns: columns to read; all when None. Key columns are always included.
        only: filter on key columns alone, so that rows are read together with those that supersede them.
        groups: row groups of a part's file that contain the rows of `only`; None scans all.

    Raises:
        RecordError: the folder has no run, or a part cannot be read.
    """
    folder = folder if isinstance(folder, RunFolder) else RunFolder(folder)
    if table not in TABLES:
        raise unknown_name("table", table, TABLES)
    if not folder.exists():
        raise RecordError(folder.missing())
    names = _with_key(table, columns)
    schema = pa.schema([TABLES[table].field(name) for name in names])
    pieces = [piece[table] for piece in _pieces(folder, {table: names}, only, groups)]
    whole = pa.concat_tables([piece.cast(schema) for piece in pieces]) if pieces else schema.empty_table()
    if table in ("tokens", "judgments"):
        whole = whole.filter(pc.invert(pc.is_in(whole["reply_id"], value_set=_superseded_ids(folder, only, groups))))
    return _winners(table, whole)


def read_raw_rows(
    folder: RunFolder,
    table: str,
    columns: Sequence[str],
    only: pc.Expression | None = None,
    groups: Groups | None = None,
) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a table as they were written, duplicates and superseded ones included.

    Rows that another writer turns into a part meanwhile may come twice.

    Args:
        columns, only, groups: see `read_table`.
    """
    for piece in _pieces(folder, {table: list(columns)}, only, groups):
        yield from piece[table].to_batches()


def read_raw_pieces(
    folder: RunFolder,
    columns: Mapping[str, Sequence[str]],
    only: pc.Expression | None = None,
    groups: Groups | None = None,
) -> Iterator[dict[str, pa.Table]]:
    """Reads columns of several tables of one stream, see `read_raw_rows`: a part, or a piece of a segment, at a time.
    What `turns` and `tokens` have of a reply is in the same piece. A table without rows may be left out."""
    yield from _pieces(folder, {table: list(names) for table, names in columns.items()}, only, groups)


def of_cases(case_ids: Iterable[str]) -> pc.Expression:
    """Filter for the rows of these cases, for `only` of `read_table`."""
    return pc.field("case_id").isin(pa.array(sorted(set(case_ids)), pa.string()))


def _pieces(
    folder: RunFolder, wanted: Mapping[str, list[str]], only: pc.Expression | None, groups: Groups | None
) -> Iterator[dict[str, pa.Table]]:
    """Parts, then segments. Segments are listed first: what becomes a part meanwhile is read twice, never missed."""
    (stream,) = {stream_of(table) for table in wanted}
    segments = complete_segments(folder, stream)
    read: set[str] = set()

    def further_parts() -> Iterator[dict[str, pa.Table]]:
        for part in folder.committed_parts():
            found = {}
            for table, names in wanted.items():
                if table in part.tables and part.tables[table] not in read:
                    read.add(part.tables[table])
                    path = folder.table_file(part, table)
                    chosen = None if groups is None else groups(path)
                    if chosen != []:  # empty tables of many parts would take longer than the parts that are read
                        found[table] = _part(path, table, names, only, chosen)
            if found:
                yield found

    yield from further_parts()
    for segment in segments:
        try:
            yield from _segment_rows(segment, wanted, only)
        except FileNotFoundError:  # a live run has just turned it into a part
            yield from further_parts()


def _segment_rows(
    segment: Segment, wanted: Mapping[str, list[str]], only: pc.Expression | None
) -> Iterator[dict[str, pa.Table]]:
    """Rows of a segment, copied a few batches at a time: a batch takes more memory than what is read of it, and a row
    that is no copy keeps the whole file open."""
    for batches in chunked(read_segment(*segment)):
        found = {}
        for table, names in wanted.items():
            rows = rows_of(table, batches, names, only)
            found[table] = pa.concat_tables([rows, rows.slice(0, 0)]).combine_chunks()  # of one chunk it makes no copy
        yield found


def _part(path: Path, table: str, names: list[str], only: pc.Expression | None, groups: list[int] | None) -> pa.Table:
    """Columns of a part; columns newer than the part are null."""
    if groups is not None:
        found = read_groups(path, groups, names)
        found = found if only is None else found.filter(only)
    else:
        found = read_part(path, names) if only is None else read_rows(path, names, KEYS[table], only)
    for name in names:
        if name not in found.column_names:
            found = found.append_column(name, pa.nulls(found.num_rows, TABLES[table].field(name).type))
    return found.select(names)


def _superseded_ids(folder: RunFolder, only: pc.Expression | None, groups: Groups | None) -> pa.Array:
    return _superseded_reply_ids(read_table(folder, "turns", ["supersedes"], only, groups))


def _superseded_reply_ids(turns: pa.Table) -> pa.Array:
    """Ids of superseded replies, and of their unparsable first replies."""
    main = turns["supersedes"].drop_null().combine_chunks().cast(pa.string())
    return pa.concat_arrays([main, pc.binary_join_element_wise(main, INVALID_SUFFIX, "")])


def _superseded(turns: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(turns["reply_id"], value_set=_superseded_reply_ids(turns))


def effective_turns(turns: pa.Table) -> pa.Table:
    """Replies that count: the first of each key that no later one supersedes.

    Args:
        turns: rows in the order of writing, with at least key, `reply_id` and `supersedes`.
    """
    return _first_of_each(turns.filter(pc.invert(_superseded(turns))), list(KEYS["turns"]))


def _with_key(table: str, columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        return list(TABLES[table].names)
    extra = {
        "events": ("at",),
        "turns": ("reply_id", "supersedes"),
        "tokens": ("reply_id",),
        "judgments": ("reply_id",),
    }
    needed = [*KEYS[table], *extra.get(table, ())]
    return list(dict.fromkeys([*needed, *columns]))


def _winners(table: str, whole: pa.Table) -> pa.Table:
    if table == "turns":
        superseded = _superseded(whole)
        whole = whole.append_column("superseded", superseded)
        if not pc.any(superseded).as_py():
            return _first_of_each(whole, list(KEYS[table]))
        current = _first_of_each(whole.filter(pc.invert(superseded)), list(KEYS[table]))
        return pa.concat_tables([current, _first_of_each(whole.filter(superseded), ["reply_id"])])
    key = list(KEYS[table])
    if table == "events":
        whole = whole.sort_by("at")
        repeats = pc.is_in(whole["kind"], value_set=pa.array(sorted(BOOKKEEPING_EVENTS)))
        unique = _first_of_each(whole.filter(pc.invert(repeats)), key, which="max")
        # Equal notes at the same time are duplicates.
        return pa.concat_tables([unique, _first_of_each(whole.filter(repeats), [*key, "at"])])
    return _first_of_each(whole, key)


def _first_of_each(whole: pa.Table, key: list[str], which: str = "min") -> pa.Table:
    """One row per key: the first written, or the last with `which="max"`."""
    if whole.num_rows < 2 or _are_distinct(whole.select(key)):
        return whole
    order = pa.array(range(whole.num_rows), pa.int64())
    numbered = whole.select(key).append_column("__row", order)
    grouped = numbered.group_by(key, use_threads=False).aggregate([("__row", which)])
    if grouped.num_rows == whole.num_rows:
        return whole
    return whole.take(grouped[f"__row_{which}"].combine_chunks().sort())


def _are_distinct(keys: pa.Table) -> bool:
    """Whether no two rows are equal, in half the time of grouping them; False also where that cannot be told."""
    codes, combinations = np.zeros(keys.num_rows, np.int64), 1
    for column in keys.columns:
        coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        combinations *= len(coded.dictionary)
        if combinations >= _MOST_COMBINATIONS:
            return False
        codes = codes * len(coded.dictionary) + coded.indices.to_numpy(zero_copy_only=False)
    codes.sort()
    return bool((codes[1:] != codes[:-1]).all())


_MOST_COMBINATIONS = 2**62
