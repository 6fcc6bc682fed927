"""Ray Data stages: `DebateStage`, `JudgeStage` and `debate_dataset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args
from uuid import uuid4

import pyarrow as pa

from moot.actors.debate.placement import ClusterSettings
from moot.actors.debate.placement import Kind as Process
from moot.deploy.runs.judge import panel, rubric_of
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.ray_data.column_mapping import ColumnMapping
from moot.deploy.runs.ray_data.row_kinds import DebateRows, JudgmentRows, RowKind
from moot.deploy.runs.resume import check_resumable
from moot.deploy.runs.run import Base, Role, build_configuration
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.run_folders import default_out
from moot.protocols.errors import ConfigError
from moot.protocols.own_protocols import adopt_protocol
from moot.protocols.registry import make_protocol
from moot.protocols.rubrics.rubric import Rubric
from moot.protocols.tasks.claim_fields import SHORTHAND
from moot.protocols.tasks.in_memory import KEYS

if TYPE_CHECKING:
    from moot.deploy.runs.ray_data.stage_client import StageClient
    from moot.deploy.runs.ray_data.stage_engine import StageEngine

Columns = Mapping[str, str | None]
"""Column by field; None for a field without a column."""

_QUESTION_FIELDS = ("passage", "title", "labels", "choices", "gold", "documents", "images")
_CLAIM_FIELDS = ("passage", "title", "documents", "images")
_REPLY_FIELDS = ("id", "reply", "prompt", "system", "evidence", "role", "domain", "group")
_UNSUPPORTED = {
    "task": "its cases are the rows",
    "limit": "its cases are the rows: use `Dataset.limit`",
    "attended": "no person answers",
    "engine": "its debates run in actors on the pipeline's Ray cluster",
    "address": "its debates run in actors on the pipeline's Ray cluster",
    "max_minutes": "stop the pipeline instead",
}


class Stage:
    """Base class of stages (`DebateStage`, `JudgeStage`): pass one to `Dataset.map_batches`, and close it when the
    dataset is no longer used.

    The run starts with the first batch. Its actors end when the stage is closed or garbage-collected, or when the
    process exits. Stages of one process with the same record and configuration share one run.
    """

    def __init__(
        self, config: RunConfig, protocol: object | None, kind: RowKind, fields: ColumnMapping, prefix: str
    ) -> None:
        for key, why in _UNSUPPORTED.items():
            if key in config.model_fields_set:
                raise ConfigError(f"`{key}` is not for a stage: {why}")
        fields.check()
        checked = OpenRun(config, protocol=protocol).prepared
        check_resumable(checked)
        self._folder, self._max_open = checked.folder, config.max_open
        self._kind, self._fields, self._prefix = kind, fields, prefix
        self._columns = checked.columns
        self._columns.warn_of_columns({field: column for field, column in fields.columns.items() if column})
        remote = config.model_copy(
            update={"out": str(checked.folder), "cluster": without_cpu_reservation(config.cluster)}
        )
        self._engine = _engine(remote.model_dump_json(exclude_unset=True), protocol, kind)
        self._local_client: StageClient | None = None

    @property
    def path(self) -> Path:
        """The record's folder."""
        return self._folder

    @property
    def max_open(self) -> int:
        """Maximum number of concurrent debates."""
        return self._max_open

    @property
    def schema(self) -> pa.Schema:
        """Schema of the added columns, the same for every batch."""
        return pa.schema([pa.field(self._prefix + field.name, field.type) for field in self._kind.schema])

    def check_columns(self, names: Sequence[str]) -> None:
        """Check the rows' columns, and log a warning of those that the protocol does not read.

        Raises:
            ConfigError: a column is missing, or conflicts with an added one.
        """
        self._columns.warn_of_columns(self._fields.found(names, self.schema.names))

    def close(self, drain_s: float = 0.0) -> None:
        """Close the stage: refuse new batches, drain open debates for `drain_s` seconds, interrupt the rest, flush the
        record and end the actors. Idempotent; the next stage on the same record resumes it."""
        self._engine.close(drain_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __call__(self, batch: Any) -> pa.Table:
        """Process one batch with this process's connection to Ray; Ray Data's tasks call a `StageClient` instead."""
        self._local_client = self._local_client or self._client()
        return self._local_client(batch)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a `StageClient` for Ray Data's tasks, once per execution, in the driver."""
        return _restore_stage, (self._client(),)

    def _client(self) -> StageClient:
        started = self._engine.start()
        from moot.deploy.runs.ray_data.stage_client import StageClient

        return StageClient(started.name, started.namespace, uuid4().hex, self._fields, self._kind.schema, self._prefix)


def without_cpu_reservation(cluster: ClusterSettings) -> ClusterSettings:
    """Cluster settings that by default reserve no CPU for the run's processes: Ray Data's tasks may occupy all CPUs
    while they wait for these processes.

    >>> without_cpu_reservation(ClusterSettings(num_cpus={"agent": 0.5})).num_cpus
    {'moderator': 0.0, 'agent': 0.5, 'writer': 0.0, 'limiter': 0.0}
    """
    kinds: tuple[Process, ...] = get_args(Process)
    return cluster.model_copy(update={"num_cpus": {kind: cluster.num_cpus.get(kind, 0.0) for kind in kinds}})


class DebateStage(Stage):
    """Ray Data stage that debates every row.

    Use it as `ds.map_batches(moot.DebateStage(protocol="selene", model=...), batch_size=1000)`.

    Args:
        config: a YAML file, or fields; options override it.
        columns: column by field of a case, where the names differ; None ignores the column of that name. By default
            the columns `question` (for a protocol that checks claims: `claim`), `passage`, `title`, `labels`,
            `choices`, `gold`, `documents` and `images` are read.
        labels: the closed set of answers of all rows; None uses the labels of each row, or free-text answers.
        constant: values of other fields, the same for all rows.
        id_column: column with unique ids; None derives ids from the rows' content, and numbers copies.
        prefix: prefix of the added columns' names.
        options: as for `moot.run`. `out` is the record's folder, resumed if it exists.

    Raises:
        UserError: the configuration is invalid, or does not apply to a stage.
    """

    def __init__(
        self,
        config: Base | None = None,
        *,
        columns: Columns | None = None,
        labels: Sequence[str] | None = None,
        constant: Mapping[str, Any] | None = None,
        id_column: str | None = None,
        prefix: str = "",
        **options: Any,
    ) -> None:
        built, protocol = _build_config(config, options)
        instance = make_protocol(built.protocol, built.settings()) if protocol is None else adopt_protocol(protocol)
        claims = instance.needs_claims
        constants = {**(constant or {}), **({} if labels is None else {"labels": list(labels)})}
        fields = ColumnMapping(
            known=(*KEYS, *SHORTHAND),
            by_name=("claim", *_CLAIM_FIELDS) if claims else ("question", *_QUESTION_FIELDS),
            needed=("claim", "question") if claims else ("question",),
            columns=dict(columns or {}),
            constant=constants,
            id_column=id_column,
        )
        super().__init__(built, protocol, DebateRows(), fields, prefix)


class JudgeStage(Stage):
    """Ray Data stage that scores the reply of every row with a panel of judges, concurrently and without a debate.

    Args:
        rubric: the name of a built-in rubric, a YAML file, or a rubric as data.
        judges: one or several models' names or bindings.
        passes: passes of each judge over each reply, 1 to 20.
        columns, id_column, prefix: as for `DebateStage`; the fields are `reply` and, optionally, `prompt`, `system`,
            `evidence`, `role`, `domain` and `group`.
        options: as for `moot.run`.

    Raises:
        UserError: the configuration is invalid, or does not apply to a stage.
    """

    def __init__(
        self,
        *,
        rubric: str | Path | Rubric | Mapping[str, Any] = "reasoning",
        judges: Role | Sequence[Role] = "simulated",
        passes: int = 1,
        columns: Columns | None = None,
        id_column: str | None = None,
        prefix: str = "",
        **options: Any,
    ) -> None:
        for key in ("protocol", "roles", "set", "agents", "model"):
            if key in options:
                raise ConfigError(f"`{key}` is not for a JudgeStage: it has `rubric`, `judges` and `passes`")
        sheet = rubric_of(rubric)
        built, _ = _build_config(None, {**options, **panel(sheet, judges, passes)})
        if built.out is None:
            built = built.model_copy(update={"out": default_out("judge", f"rows-{sheet.name}", built.seed)})
        fields = ColumnMapping(
            known=_REPLY_FIELDS,
            by_name=_REPLY_FIELDS[1:],
            needed=("reply",),
            columns=dict(columns or {}),
            id_column=id_column,
        )
        super().__init__(built, None, JudgmentRows(tuple(sheet.dimensions)), fields, prefix)


def _build_config(config: Base | None, options: Mapping[str, Any]) -> tuple[RunConfig, object | None]:
    """The configuration, and the protocol if given as an object."""
    built, objects = build_configuration(config, options)
    if "task" in objects:
        raise ConfigError(f"`task` is not for a stage: {_UNSUPPORTED['task']}")
    return built, objects.get("protocol")


def _engine(config: str, protocol: object | None, kind: RowKind) -> StageEngine:
    try:
        from moot.deploy.runs.ray_data import stage_client, stage_engine  # noqa: F401 - a missing package fails here, not in a task
    except ImportError as error:
        raise ConfigError(f"a stage needs {error.name}, which is not installed: pip install 'moot[data]'") from None
    return stage_engine.engine_for(config, protocol, kind)


def _restore_stage(client: StageClient) -> StageClient:
    return client


if TYPE_CHECKING:
    from ray.data import Dataset

_CONCURRENT_BATCHES = 16
"""Number of concurrent batches; they wait in threads of one process."""

_ROWS_PER_SLOT = 3
"""Rows in flight per concurrent debate, so that a free slot is reused immediately."""


def debate_dataset(
    ds: Dataset,
    stage: Stage | None = None,
    *,
    batch_size: int | None = None,
    **options: Any,
) -> Dataset:
    """Debate, or judge, every row of a dataset; the result has its columns and those of the stage.

    The default size of batches keeps `max_open` debates open, and batches wait without reserving a CPU.

    Args:
        ds: the dataset.
        stage: your own `DebateStage` or `JudgeStage`, which you can close; None creates one from the options.
        batch_size: rows per batch; None derives it from `max_open`.
        options: the options of `DebateStage`.

    Raises:
        UserError: an argument or the configuration is invalid, or a column is known to be missing or in conflict.
    """
    if stage is None:
        stage = DebateStage(**options)
    elif options:
        raise ConfigError("both a stage and options are given: pass the options to the stage")
    if not isinstance(stage, Stage):
        raise ConfigError(
            f"expected a DebateStage or a JudgeStage after the dataset, not {stage!r}: pass options by keyword"
        )
    from ray.data import ActorPoolStrategy
    from ray.data import Dataset as RayDataset

    if not isinstance(ds, RayDataset):
        raise ConfigError(f"expected a ray.data.Dataset, not a {type(ds).__name__}: `ray.data.from_items` makes one")
    known = ds.schema(fetch_if_missing=False)
    if known is not None:
        stage.check_columns(known.names)
    from moot.deploy.runs.ray_data.stage_client import StageClientActor

    waiting = ActorPoolStrategy(
        size=1,
        max_tasks_in_flight_per_actor=_CONCURRENT_BATCHES,
        max_concurrent_calls_per_actor=_CONCURRENT_BATCHES,
        enable_true_multi_threading=True,
    )
    rows = batch_size or max(1, stage.max_open * _ROWS_PER_SLOT // _CONCURRENT_BATCHES)
    return ds.repartition(target_num_rows_per_block=rows, strict=True).map_batches(
        StageClientActor,
        fn_constructor_args=[stage],
        batch_size=None,  # the whole block, so that a task has one batch
        batch_format="pyarrow",
        compute=waiting,
        num_cpus=0,
        udf_modifying_row_count=False,
    )
