"""What run.yaml and epochs.json say of a run, and the `moot doctor` command for its models."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter, ValidationError

from moot.actors.models.prices import Price
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml, remarks_on
from moot.actors.record.schema import ASKED, SCHEMA_VERSION
from moot.actors.record.store.mirror import display_name
from moot.actors.record.tables import read_raw_rows, read_table
from moot.protocols.errors import RecordError
from moot.protocols.messages import family_of
from moot.protocols.validation_messages import expected_value


def doctor_command(member: Mapping[str, Any], configuration: Mapping[str, Any]) -> str:
    """Command that examines a model under a protocol and its settings.

    Args:
        member: fields of a role's binding.
        configuration: fields of a run's configuration; without a protocol the model alone is examined.

    >>> member = {"model": "http://127.0.0.1:8000/v1#m", "api_key_env": "KEY"}
    >>> doctor_command(member, {"protocol": "evince", "set": {"agents": 2}})
    "moot doctor --model 'http://127.0.0.1:8000/v1#m' --api-key-env KEY --protocol evince --set agents=2"
    """
    given = {
        "--model": member.get("model"),
        "--api-key-env": member.get("api_key_env"),
        "--base-url": member.get("base_url"),
        "--protocol": configuration.get("protocol"),
        "--preset": configuration.get("preset"),
    }
    words = [word for flag, value in given.items() if value is not None for word in (flag, str(value))]
    settings = dict(configuration.get("set") or {})
    if configuration.get("agents") is not None:
        settings["agents"] = configuration["agents"]
    for key, value in settings.items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(["moot", "doctor", *words])


T = TypeVar("T")

_PRICES = TypeAdapter(dict[str, Price])
_AMOUNTS = TypeAdapter(dict[str, int | float])


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Content of run.yaml and epochs.json, as far as present.

    Attributes:
        path: the run's folder.
        protocol: its name; of a user's own without one, `module:Class`.
        preset: name of the protocol's preset; None without one.
        models: model names by role family; those of the replies if run.yaml has none.
        binds_simulated: whether a role has the simulated model, or one that replays its replies.
        simulated: whether any reply is a simulated model's; False for a run that asked no model.
        requests_logprobs: whether any role asks its model for token log-probabilities; None where run.yaml has no
            bindings.
        cases: number of the run's cases; None when its source could not be counted.
        wall_s: seconds over all sessions; None without a session, or if the time of one (a killed session) is unknown.
        wall_unknown_since: start of the first session with an unknown time; None without one.
        last_started_at: Unix time at which the last owner acquired the folder; None when unknown.
        owners: number of owners that the folder has had.
        stopped_by: reason why the last session stopped by itself; empty if it did not.
        prices: prices by model, as at the start of the run; only of models with a known price.
        unsettled: amounts that killed sessions may have used beyond the record, by budget (`tokens`, `usd`).
        remarks: on the record, for whoever reads its figures.
        configuration: run.yaml.
    """

    path: Path
    schema_version: int
    task: str | None
    protocol: str | None
    preset: str | None
    models: dict[str, list[str]]
    binds_simulated: bool
    simulated: bool
    requests_logprobs: bool | None
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
    remarks: tuple[str, ...]
    configuration: Mapping[str, Any]

    def doctor_commands(self, role: str, *, alone: bool = False) -> str:
        """Commands that examine the models of a role family or of one member, under this run's protocol and settings.

        Args:
            role: such as `agent`, or `agent/1`.
            alone: whether the models are examined without the protocol.
        """
        family, _, number = role.partition("/")
        bound = _mapping(self.configuration.get("bindings")).get(family)
        members = [_mapping(each) for each in bound] if isinstance(bound, list) else []
        members = members or [{"model": name} for name in self.models.get(family, ("MODEL",))]
        if number.isdigit():
            members = [members[int(number) % len(members)]]
        under = {} if alone else self.configuration
        return ", ".join(dict.fromkeys(f"`{doctor_command(each, under)}`" for each in members))

    @property
    def name(self) -> str:
        """Name of the run for users: its folder, or its URI."""
        return display_name(self.path)


def read_run_info(folder: str | Path) -> RunInfo:
    """Reads run.yaml and epochs.json.

    Raises:
        RecordError: the folder has no run, or its run.yaml cannot be read.
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
    without_time = [session for session in sessions if not isinstance(session.get("wall_s"), int | float)]
    unsettled = Counter[str]()
    for session in sessions:
        unsettled.update(_valid(_AMOUNTS, session.get("unsettled"), run, "sessions: unsettled"))
    epochs = run.epochs()
    texts: dict[str, Any] = {name: _text(raw.get(name)) for name in ("task", "protocol", "preset", "encoder")}
    texts["protocol"] = _text(raw.get("protocol_name")) or texts["protocol"]
    counts: dict[str, Any] = {name: raw[name] if isinstance(raw.get(name), int) else None for name in ("seed", "cases")}
    return RunInfo(
        path=run.path,
        schema_version=raw.get("schema_version", SCHEMA_VERSION),
        models=models,
        binds_simulated=simulated,
        simulated=simulated and _asked_a_model(run),
        requests_logprobs=_requests_logprobs(_mapping(raw.get("bindings"))),
        wall_s=float(sum(each["wall_s"] for each in sessions)) if sessions and not without_time else None,
        wall_unknown_since=_text(without_time[0].get("started_at")) if without_time else None,
        last_started_at=epochs[-1].started_at if epochs else None,
        owners=len(epochs),
        stopped_by=str(sessions[-1].get("stopped_by") or "") if sessions else "",
        prices=_valid(_PRICES, raw.get("price_table"), run, "price_table"),
        unsettled=dict(unsettled),
        remarks=tuple(remarks_on(raw)),
        configuration=raw,
        **texts,
        **counts,
    )


def _valid(reader: TypeAdapter[dict[str, T]], value: object, run: RunFolder, key: str) -> dict[str, T]:
    """Values by name of a key of run.yaml; empty where it has no such key."""
    try:
        return reader.validate_python({str(name): each for name, each in _mapping(value).items()})
    except ValidationError as error:
        raise RecordError(
            f"{run.path / 'run.yaml'}: `{key}` cannot be read: {expected_value(error.errors()[0])}"
        ) from None


def _asked_a_model(run: RunFolder) -> bool:
    """Whether any model was asked; a protocol may ask none, whatever its bindings. Replies may be lost."""
    if any(asks_a_model(batch["role"]) for batch in read_raw_rows(run, "turns", ["role"])):
        return True
    asked = pc.field("kind") == ASKED
    return any(batch.num_rows for batch in read_raw_rows(run, "events", ["kind"], asked))


def asks_a_model(roles: pa.ChunkedArray) -> bool:
    """Whether any of these roles is a model's, not a person's."""
    return bool(pc.any(pc.fill_null(pc.not_equal(roles, "person"), True)).as_py())


def _requests_logprobs(bindings: Mapping[Any, Any]) -> bool | None:
    members = [each for family in bindings.values() if isinstance(family, list) for each in map(_mapping, family)]
    return any(each.get("top_logprobs") or each.get("early_stop") for each in members) if members else None


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
