"""Content of run.yaml and epochs.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.prices import Price
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import SCHEMA_VERSION
from moot.actors.record.store.mirror import display_name
from moot.actors.record.tables import read_raw_rows, read_table
from moot.protocols.errors import RecordError
from moot.protocols.messages import family_of


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Content of run.yaml, as far as present; `models` falls back to those of the replies.

    Attributes:
        path: the run's folder.
        preset: what a paper states of the protocol, on which the run was built; None without one.
        binds_simulated: whether a role has the simulated model, or one that replays its replies.
        simulated: whether any reply is a simulated model's; False for a run that asked no model.
        cases: that the run is over; None when its source could not be counted.
        wall_s: over all sessions; None when there is none or one of them (a killed one) has none.
        wall_unknown_since: when the first of those that have none began; None when there is no such session.
        last_started_at: Unix time at which the last owner acquired the folder; None when unknown.
        owners: how many owners the folder has had.
        stopped_by: what stopped the last session by itself; empty when nothing did.
        prices: by model, as they were when the run began; only of models whose price was known.
        unsettled: by budget (`tokens`, `usd`), what killed sessions may have used beyond the record, summed.
    """

    path: Path
    schema_version: int
    task: str | None
    protocol: str | None
    preset: str | None
    models: dict[str, list[str]]
    binds_simulated: bool
    simulated: bool
    encoder: str | None
    seed: int | None
    cases: int | None
    wall_s: float | None
    wall_unknown_since: str | None
    last_started_at: float | None
    owners: int
    stopped_by: str
    prices: dict[str, Price]
    unsettled: dict[str, float]

    @property
    def name(self) -> str:
        """Name of the run for users: its folder, or its URI."""
        return display_name(self.path)


def read_run_info(folder: str | Path) -> RunInfo:
    """Read run.yaml and epochs.json.

    Raises:
        RecordError: when there is no run in the folder or its run.yaml cannot be read.
    """
    run = RunFolder(folder)
    if not run.exists():
        raise RecordError(run.missing())
    raw = read_run_yaml(run)
    by_role = _mapping(raw.get("models"))
    models = {
        str(role): list(map(str, names if isinstance(names, list) else [names])) for role, names in by_role.items()
    }
    models = models or _models_used(run)
    simulated = raw.get("simulated")
    if not isinstance(simulated, bool):
        simulated = any(name.partition("?")[0] == "simulated" for names in models.values() for name in names)
    listed = raw.get("sessions")
    sessions = [each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, Mapping)]
    timeless = [session for session in sessions if not isinstance(session.get("wall_s"), int | float)]
    unsettled = Counter[str]()
    for session in sessions:
        unsettled.update(_mapping(session.get("unsettled")))
    epochs = run.epochs()
    texts: dict[str, Any] = {name: _text(raw.get(name)) for name in ("task", "protocol", "preset", "encoder")}
    counts: dict[str, Any] = {name: raw[name] if isinstance(raw.get(name), int) else None for name in ("seed", "cases")}
    return RunInfo(
        path=run.path,
        schema_version=raw.get("schema_version", SCHEMA_VERSION),
        models=models,
        binds_simulated=simulated,
        simulated=simulated and _asked_a_model(run),
        wall_s=float(sum(each["wall_s"] for each in sessions)) if sessions and not timeless else None,
        wall_unknown_since=_text(timeless[0].get("started_at")) if timeless else None,
        last_started_at=epochs[-1].started_at if epochs else None,
        owners=len(epochs),
        stopped_by=str(sessions[-1].get("stopped_by") or "") if sessions else "",
        prices={str(name): Price.model_validate(price) for name, price in _mapping(raw.get("price_table")).items()},
        unsettled=dict(unsettled),
        **texts,
        **counts,
    )


def _asked_a_model(run: RunFolder) -> bool:
    """Whether any model was asked: a protocol may ask none, whatever its bindings."""
    return any(asks_a_model(batch["role"]) for batch in read_raw_rows(run, "turns", ["role"]))


def asks_a_model(roles: pa.ChunkedArray) -> bool:
    """Whether replies of these roles are a model's, not all a person's."""
    return bool(pc.any(pc.fill_null(pc.not_equal(roles, "person"), True)).as_py())


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _models_used(run: RunFolder) -> dict[str, list[str]]:
    asked = read_table(run, "turns", ["role", "model"]).select(["role", "model"])
    used: dict[str, dict[str, None]] = {}
    for row in asked.group_by(["role", "model"]).aggregate([]).to_pylist():
        if row["role"] != "person":
            used.setdefault(family_of(row["role"] or ""), {})[row["model"] or ""] = None
    return {family: sorted(names) for family, names in sorted(used.items())}
