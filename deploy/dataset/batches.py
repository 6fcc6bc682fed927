"""Batches of Ray Data in any of its formats: cells out, columns of fixed types in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from ray.data.block import BlockAccessor

Batch = Any
"""What `map_batches` hands over: a mapping of arrays, a pandas DataFrame or an Arrow table."""


def as_table(batch: Batch) -> pa.Table:
    """The batch as Ray Data would keep it, in Arrow."""
    if isinstance(batch, pa.Table):
        return batch
    return BlockAccessor.for_block(BlockAccessor.batch_to_block(batch)).to_arrow()


def cells(table: pa.Table, columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """The cells of some columns, row by row.

    Args:
        columns: from the names wanted to the columns' names.
    """
    held = {field: table.column(column).to_pylist() for field, column in columns.items()}
    return [{field: values[i] for field, values in held.items()} for i in range(table.num_rows)]


def with_columns(table: pa.Table, rows: Sequence[Mapping[str, Any]], schema: pa.Schema, prefix: str) -> pa.Table:
    """The table with a column for every field of the schema, whatever the rows hold."""
    for field in schema:
        values = pa.array([row.get(field.name) for row in rows], type=field.type)
        table = table.append_column(pa.field(prefix + field.name, field.type), values)
    return table
