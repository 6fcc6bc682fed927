"""A whole pipeline in one call: `debate_dataset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from moot.deploy.dataset.stages import Columns, DebateStage, Stage
from moot.deploy.running.run import Base, OpenOptions
from moot.protocols.errors import ConfigError

if TYPE_CHECKING:
    from ray.data import Dataset

_TASKS = 8
"""Batches under way at once: each waits in a process of its own."""

_AHEAD = 3
"""Rows on their way per place for an open debate, so that a place that falls free is taken at once."""


def debate_dataset(
    ds: Dataset,
    stage: Stage | None = None,
    *,
    config: Base | None = None,
    batch_size: int | None = None,
    columns: Columns | None = None,
    labels: Sequence[str] | None = None,
    constant: Mapping[str, Any] | None = None,
    id_column: str | None = None,
    prefix: str = "",
    **options: Unpack[OpenOptions],
) -> Dataset:
    """A dataset with every row debated, or judged: its columns and those of the stage.

    The rows are cut into batches of a size that keeps `max_open` debates open, and wait in tasks that ask for no CPU.

    Args:
        stage: a `DebateStage` or `JudgeStage` of one's own, which can be closed; None makes one from the rest.
        batch_size: rows that travel together; None goes by `max_open`.

    Raises:
        UserError: one line about what is wrong, columns that are known to be missing or in the way included.
    """
    if stage is None:
        stage = DebateStage(
            config,
            columns=columns,
            labels=labels,
            constant=constant,
            id_column=id_column,
            prefix=prefix,
            **options,
        )
    elif any((config, columns, labels, constant, id_column, prefix, options)):
        raise ConfigError("options go with the stage that they are for, not with `debate_dataset` beside it")
    known = ds.schema(fetch_if_missing=False)
    if known is not None:
        stage.check_columns(known.names)
    from ray.data import TaskPoolStrategy

    rows = batch_size or max(1, stage.max_open * _AHEAD // _TASKS)
    return ds.repartition(target_num_rows_per_block=rows).map_batches(
        stage,
        batch_size=rows,
        batch_format="pyarrow",
        compute=TaskPoolStrategy(size=_TASKS),
        num_cpus=0,
        udf_modifying_row_count=False,
    )
