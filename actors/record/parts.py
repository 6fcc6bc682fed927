"""Reader of committed parts: Parquet files whose page checksums are verified."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from moot.protocols.errors import RecordError

Groups = Callable[[Path], list[int]]
"""Row groups of a part's file that may contain the requested rows, ascending."""


@contextmanager
def open_parquet(file: Path, **options: Any) -> Iterator[pq.ParquetFile]:
    """Opens a Parquet file of a part.

    Args:
        options: of `pyarrow.parquet.ParquetFile`.

    Raises:
        RecordError: it cannot be read, here or in the body of the context.
    """
    try:
        with pq.ParquetFile(file, page_checksum_verification=True, **options) as part:
            yield part
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{file} cannot be read: {error}") from error


def columns_of(file: Path) -> set[str]:
    """Column names of a part. Raises like `open_parquet`."""
    with open_parquet(file) as part:
        return set(part.schema_arrow.names)


def read_part(file: Path, columns: list[str], only: pc.Expression | None = None) -> pa.Table:
    """Reads those columns of a part that it has, for the selected rows. Raises like `open_parquet`."""
    with open_parquet(file) as part:
        there = _there(part, columns)
        if only is None:
            return part.read_row_groups(list(range(part.num_row_groups)), columns=there).select(there)
    try:
        return pq.read_table(file, columns=there, filters=only, partitioning=None, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"{file} cannot be read: {error}") from error


def read_groups(file: Path, groups: list[int], columns: list[str]) -> pa.Table:
    """Reads columns of some row groups of a part, in the given order; missing columns are skipped. Raises like
    `open_parquet`."""
    with open_parquet(file) as part:
        there = _there(part, columns)
        return part.read_row_groups(groups, columns=there).select(there)


def _there(part: pq.ParquetFile, columns: list[str]) -> list[str]:
    known = set(part.schema_arrow.names)
    return [name for name in columns if name in known]


def groups_with(case_ids: Iterable[str]) -> Groups:
    """Selects the row groups of a part's file with rows of some cases; each file's ids are read once."""
    wanted = pa.array(sorted(set(case_ids)), pa.string())

    @cache
    def groups(file: Path) -> list[int]:
        with open_parquet(file, read_dictionary=["case_id"]) as part:
            return [number for number in range(part.num_row_groups) if _has(part, number, wanted)]

    return groups


def _has(part: pq.ParquetFile, group: int, case_ids: pa.Array) -> bool:
    there = part.read_row_group(group, ["case_id"])["case_id"].unique().cast(pa.string())
    return bool(pc.any(pc.is_in(there, value_set=case_ids)).as_py())
