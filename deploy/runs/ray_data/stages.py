"""Ray Data stages, mapped over batches: `DebateStage` and `JudgeStage`."""

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
_NOT_HERE = {
    "task": "its cases are the rows",
    "limit": "its cases are the rows: use `Dataset.limit`",
    "attended": "no person answers",
    "engine": "its debates run in actors on the pipeline's Ray cluster",
    "address": "its debates run in actors on the pipeline's Ray cluster",
    "max_minutes": "stop the pipeline instead",
}


class Stage:
    """A stage with its run (`DebateStage`, `JudgeStage`): pass it to `Dataset.map_batches`, and close it after the
    dataset was used.

    Nothing starts before the pipeline runs. The run's actors end when the stage is closed or garbage-collected, or when
    the program ends. Stages of one process with the same record and configuration share one run.
    """

    def __init__(
        self, config: RunConfig, protocol: object | None, kind: RowKind, fields: ColumnMapping, prefix: str
    ) -> None:
        for key, why in _NOT_HERE.items():
            if key in config.model_fields_set:
                raise ConfigError(f"`{key}` is not for a stage: {why}")
        fields.check()
        checked = OpenRun(config, protocol=protocol).prepared
        check_resumable(checked)
        self._folder, self._max_open = checked.folder, config.max_open
        self._kind, self._fields, self._prefix = kind, fields, prefix
        placed = config.model_copy(
            update={"out": str(checked.folder), "cluster": without_cpu_reservation(config.cluster)}
        )
        self._engine = _engine(placed.model_dump_json(exclude_unset=True), protocol, kind)
        self._here: StageClient | None = None

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
        """The columns that are added, the same for every batch."""
        return pa.schema([pa.field(self._prefix + field.name, field.type) for field in self._kind.schema])

    def check_columns(self, names: Sequence[str]) -> None:
        """Check the rows' columns.

        Raises:
            ConfigError: a column is missing, or conflicts with an added one.
        """
        self._fields.found(names, self.schema.names)

    def close(self, drain_s: float = 0.0) -> None:
        """Refuse new batches, drain open debates for this many seconds, interrupt the rest, flush the record and end
        the actors. Idempotent; the next stage on the same record resumes it."""
        self._engine.close(drain_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __call__(self, batch: Any) -> pa.Table:
        """Debate one batch now, in this process's Ray; Ray Data calls a copy of the stage in its tasks."""
        self._here = self._here or self._caller()
        return self._here(batch)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the client for Ray Data's tasks, once per execution, in the driver."""
        return _restore_stage, (self._caller(),)

    def _caller(self) -> StageClient:
        started = self._engine.start()
        from moot.deploy.runs.ray_data.stage_client import StageClient

        return StageClient(started.name, started.namespace, uuid4().hex, self._fields, self._kind.schema, self._prefix)


def without_cpu_reservation(placing: ClusterSettings) -> ClusterSettings:
    """Reserve no CPU for the run's processes by default: Ray Data's tasks may occupy all CPUs while they wait for them.

    >>> without_cpu_reservation(ClusterSettings(num_cpus={"agent": 0.5})).num_cpus
    {'moderator': 0.0, 'agent': 0.5, 'writer': 0.0, 'limiter': 0.0}
    """
    kinds: tuple[Process, ...] = get_args(Process)
    return placing.model_copy(update={"num_cpus": {kind: placing.num_cpus.get(kind, 0.0) for kind in kinds}})


class DebateStage(Stage):
    """Ray Data stage that debates every row.

    Used as `ds.map_batches(moot.DebateStage(protocol="selene", model=...), batch_size=1000)`.

    Args:
        config: a YAML file, or fields; options override it.
        columns: columns by field of a case, where the names differ. Columns called
            `question` (for a protocol that checks claims: `claim`), `passage`, `title`, `labels`, `choices`, `gold`,
            `documents` and `images` are read without being asked for; None leaves one alone.
        labels: the closed set of answers of all rows; without it that of each row, or free-text answers.
        constant: other fields that are the same for all rows.
        id_column: column with unique ids; None identifies rows by their content, and numbers copies.
        prefix: prefix of the added columns' names.
        options: as for `moot.run`. `out` is the record's folder, resumed when it exists.

    Raises:
        UserError: one line about what is wrong.
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
        found = make_protocol(built.protocol, built.settings()) if protocol is None else adopt_protocol(protocol)
        claims = found.needs_claims
        same = {**(constant or {}), **({} if labels is None else {"labels": list(labels)})}
        fields = ColumnMapping(
            known=(*KEYS, *SHORTHAND),
            by_name=("claim", *_CLAIM_FIELDS) if claims else ("question", *_QUESTION_FIELDS),
            needed=("claim", "question") if claims else ("question",),
            columns=dict(columns or {}),
            constant=same,
            id_column=id_column,
        )
        super().__init__(built, protocol, DebateRows(), fields, prefix)


class JudgeStage(Stage):
    """Ray Data stage that scores the reply of every row with judges, all in flight together, without a debate.

    Args:
        rubric: the name of a built-in rubric, a YAML file, or a rubric as data.
        judges: one or several models' names or bindings.
        passes: passes of each judge over each reply, 1 to 20.
        columns, id_column, prefix: as for `DebateStage`; the fields are `reply`, and where there are such `prompt`,
            `system`, `evidence`, `role`, `domain` and `group`.
        options: as for `moot.run`.

    Raises:
        UserError: one line about what is wrong.
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
        raise ConfigError(f"`task` is not for a stage: {_NOT_HERE['task']}")
    return built, objects.get("protocol")


def _engine(config: str, protocol: object | None, kind: RowKind) -> StageEngine:
    try:
        from moot.deploy.runs.ray_data import stage_client, stage_engine  # noqa: F401 - a missing package fails here, not in a task
    except ImportError as error:
        raise ConfigError(f"a stage needs {error.name}, which is not installed: pip install 'moot[data]'") from None
    return stage_engine.engine_for(config, protocol, kind)


def _restore_stage(caller: StageClient) -> StageClient:
    return caller


if TYPE_CHECKING:
    from ray.data import Dataset

_BATCHES = 16
"""Concurrent batches; they wait in threads of one process."""

_AHEAD = 3
"""Rows in flight per slot of an open debate, so that a free slot is reused immediately."""


def debate_dataset(
    ds: Dataset,
    stage: Stage | None = None,
    *,
    batch_size: int | None = None,
    **options: Any,
) -> Dataset:
    """Debate, or judge, every row of a dataset; returns its columns and those of the stage.

    Batches have a size that keeps `max_open` debates open, and wait without reserving a CPU.

    Args:
        stage: your own `DebateStage` or `JudgeStage`, which you can close; None creates one from the options.
        batch_size: rows per batch; None derives it from `max_open`.
        options: the options of `DebateStage`.

    Raises:
        UserError: one line about what is wrong, including columns known to be missing or in conflict.
    """
    if stage is None:
        stage = DebateStage(**options)
    elif options:
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
    from moot.deploy.runs.ray_data.stage_client import StageClientActor

    waiting = ActorPoolStrategy(
        size=1,
        max_tasks_in_flight_per_actor=_BATCHES,
        max_concurrent_calls_per_actor=_BATCHES,
        enable_true_multi_threading=True,
    )
    rows = batch_size or max(1, stage.max_open * _AHEAD // _BATCHES)
    return ds.repartition(target_num_rows_per_block=rows, strict=True).map_batches(
        StageClientActor,
        fn_constructor_args=[stage],
        batch_size=None,  # blocks of this size, so that a task has one batch
        batch_format="pyarrow",
        compute=waiting,
        num_cpus=0,
        udf_modifying_row_count=False,
    )
