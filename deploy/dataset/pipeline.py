"""A whole pipeline in one call: `debate_dataset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from moot.deploy.dataset.stages import Columns, DebateStage, Stage
from moot.deploy.running.run import Base, OpenOptions
from moot.protocols.errors import ConfigError

if TYPE_CHECKING:
    from ray.data import Dataset

_BATCHES = 16
"""Batches under way at once; they wait in threads of one process."""

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

    The rows are cut into batches of a size that keeps `max_open` debates open, and wait without asking for a CPU.

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
    if not isinstance(stage, Stage):
        raise ConfigError(f"expected a DebateStage or a JudgeStage after the dataset, not {stage!r}: name options")
    from ray.data import ActorPoolStrategy
    from ray.data import Dataset as RayDataset

    if not isinstance(ds, RayDataset):
        raise ConfigError(f"expected a ray.data.Dataset, not a {type(ds).__name__}: `ray.data.from_items` makes one")
    known = ds.schema(fetch_if_missing=False)
    if known is not None:
        stage.check_columns(known.names)
    from moot.deploy.dataset.caller import MootBatches

    waiting = ActorPoolStrategy(
        size=1,
        max_tasks_in_flight_per_actor=_BATCHES,
        max_concurrent_calls_per_actor=_BATCHES,
        enable_true_multi_threading=True,
    )
    rows = batch_size or max(1, stage.max_open * _AHEAD // _BATCHES)
    return ds.repartition(target_num_rows_per_block=rows, strict=True).map_batches(
        MootBatches,
        fn_constructor_args=[stage],
        batch_size=None,  # a block, so that a task holds one batch
        batch_format="pyarrow",
        compute=waiting,
        num_cpus=0,
        udf_modifying_row_count=False,
    )
