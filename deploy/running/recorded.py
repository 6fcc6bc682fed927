"""Runs that a new run builds on: the one whose replies it reuses, and the one that it replays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moot.actors.models.resolve import ModelSpec
from moot.actors.record.folder import RunFolder
from moot.actors.record.recorded_run import RecordedRun
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import SCHEMA_VERSION
from moot.actors.reuse import count_reusable
from moot.actors.roles import RoleBinding
from moot.protocols.errors import ConfigError, RecordError

_OWN_TO_ITS_MODEL = frozenset({"model", "base_url", "api_key_env", "structured"})
"""What a binding says of the model that spoke; a replay speaks in its place."""


def reused_folder(reuse: str, own: Path) -> Path:
    """The folder that `reuse` names, absolute, if a run of this version lies there.

    Args:
        own: this run's folder.

    Raises:
        ConfigError: no run is there, it is this run's own, or another version of moot has written it.
    """
    folder = Path(reuse).expanduser().absolute()
    if folder.resolve() == own.resolve():
        raise ConfigError(f"--reuse {reuse}: that is this run's own folder; name another one with --out")
    if not RunFolder(folder).exists():
        raise ConfigError(f"--reuse {reuse}: no run there (no run.yaml)")
    try:
        version = read_run_yaml(RunFolder(folder)).get("schema_version", SCHEMA_VERSION)
    except RecordError as error:
        raise ConfigError(f"--reuse {reuse}: {error}") from None
    if version != SCHEMA_VERSION:
        raise ConfigError(f"--reuse {reuse}: its schema_version is {version}, expected {SCHEMA_VERSION}")
    return folder


def reusable_replies(folder: Path) -> int:
    """How many replies of a run can answer equal asks; reads its index.

    Raises:
        ConfigError: the record cannot be read.
    """
    try:
        return count_reusable(RecordedRun(folder))
    except RecordError as error:
        raise ConfigError(f"--reuse {folder}: {error}") from None


def replayed_run(model: str) -> RunFolder | None:
    """The run that `replay/RUN` names; None for any other model.

    Raises:
        ConfigError: no run is there.
    """
    spec = ModelSpec.parse(model)
    if spec.kind != "replay":
        return None
    folder = RunFolder(Path(spec.model).expanduser().absolute())
    if not folder.exists():
        raise ConfigError(f"model {model!r}: no run in {spec.model} (no run.yaml)")
    return folder


def recorded_members(model: str, family: str) -> list[dict[str, Any]]:
    """For `replay/RUN` the bindings of a role in that run, the model aside; none for any other model.

    Raises:
        ConfigError: no run is there, or its run.yaml cannot be read.
    """
    folder = replayed_run(model)
    if folder is None:
        return []
    try:
        families = read_run_yaml(folder).get("bindings")
    except RecordError as error:
        raise ConfigError(f"model {model!r}: {error}") from None
    members = families.get(family, []) if isinstance(families, Mapping) else []
    known = RoleBinding.model_fields.keys() - _OWN_TO_ITS_MODEL
    return [{key: value for key, value in member.items() if key in known} for member in members]


def placed(binding: RoleBinding) -> RoleBinding:
    """A binding as actors elsewhere can use it: the folder of a replay is absolute."""
    folder = replayed_run(binding.model)
    return binding if folder is None else binding.model_copy(update={"model": f"replay/{folder.path}"})
