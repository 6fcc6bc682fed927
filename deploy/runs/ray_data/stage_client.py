"""Client of a stage actor in a Ray Data task: sends batches of rows and waits for their results."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import ray
from ray.data.block import BlockAccessor
from ray.exceptions import RayTaskError

from moot.deploy.runs.ray_data.column_mapping import ColumnMapping
from moot.protocols.errors import ConfigError, MootError

CLOSED = "the stage was closed while its dataset was in use"


class StageClient:
    """Client of a stage actor in a Ray Data task.

    Args:
        actor, namespace: name of the stage actor.
        execution: id of the pipeline's execution.
        fields: mapping of rows to cases.
        schema: schema of the added columns.
        prefix: prefix of their names.
    """

    def __init__(
        self, actor: str, namespace: str, execution: str, fields: ColumnMapping, schema: pa.Schema, prefix: str
    ) -> None:
        self.actor, self._namespace, self._execution = actor, namespace, execution
        self._fields, self._schema, self._prefix = fields, schema, prefix
        self._batches = itertools.count()

    def __call__(self, batch: Batch) -> pa.Table:
        """Process one batch in a Ray Data task; see `process_batch`."""
        return self.process_batch(batch, next(self._batches))

    def process_batch(self, batch: Batch, number: int) -> pa.Table:
        """The batch with the stage's columns; waits for the results of all its rows.

        Args:
            batch: the batch.
            number: index of the batch in the Ray task.

        Raises:
            MootError: a column is missing or in conflict, or the run cannot be opened or failed.
        """
        table = as_table(batch)
        added = [self._prefix + name for name in self._schema.names]
        columns = self._fields.found(table.column_names, added)
        rows = [self._fields.row(row) for row in cells(table, columns)]
        key = (self._execution, ray.get_runtime_context().get_task_id() or "", number)
        results = self._await_rows(key, rows)
        return with_columns(table, results, self._schema, self._prefix)

    def _await_rows(self, key: tuple[str, str, int], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            handle = ray.get_actor(self.actor, namespace=self._namespace)
        except ValueError:
            raise ConfigError(CLOSED) from None
        try:
            raw = ray.get(handle.debate.remote(key, msgspec.msgpack.encode(rows)))
        except RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, MootError) else error) from None
        results: list[dict[str, Any]] = msgspec.msgpack.decode(raw)
        return results


class StageClientActor:
    """Client of a stage actor in a Ray Data actor, which waits for several batches concurrently in threads.

    Each of its tasks must contain one batch: it cannot distinguish a second batch from a retry of the first.
    """

    def __init__(self, client: StageClient) -> None:
        self._client = client

    def __call__(self, batch: Batch) -> pa.Table:
        """See `StageClient.process_batch`."""
        return self._client.process_batch(batch, 0)


Batch = Any
"""Batch formats of `map_batches`: a mapping of arrays, a pandas DataFrame or an Arrow table."""


def as_table(batch: Batch) -> pa.Table:
    """Convert a batch to an Arrow table as Ray Data does."""
    if isinstance(batch, pa.Table):
        return batch
    return BlockAccessor.for_block(BlockAccessor.batch_to_block(batch)).to_arrow()


def cells(table: pa.Table, columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows of a table as dictionaries.

    Args:
        columns: column by key of the dictionaries.
    """
    cells = {field: table.column(column).to_pylist() for field, column in columns.items()}
    return [{field: values[i] for field, values in cells.items()} for i in range(table.num_rows)]


def with_columns(table: pa.Table, rows: Sequence[Mapping[str, Any]], schema: pa.Schema, prefix: str) -> pa.Table:
    """The table with a column for every field of the schema; null where a row has no value."""
    for field in schema:
        values = pa.array([row.get(field.name) for row in rows], type=field.type)
        table = table.append_column(pa.field(prefix + field.name, field.type), values)
    return table
