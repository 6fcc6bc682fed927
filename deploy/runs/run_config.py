"""Run configuration: the fields, parsed from YAML and flags, with one-line errors.

A configuration names API keys only by their environment variable (`api_key_env`), so it may be printed, written into
the record and sent to every actor.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.first_asks import MOST_UNUSABLE
from moot.actors.debate.placement import ClusterSettings, GivenClusterSettings, merge_cluster_settings
from moot.actors.debate.run_spec import Engine, Placement
from moot.actors.encoders.resolve import AUTO
from moot.actors.limits.settings import EndpointLimits
from moot.actors.models.resolve import EnvName, ModelBinding
from moot.actors.record.run_yaml import REMARKS, is_recorded
from moot.actors.record.sealed_yaml import SEALED, check_seal
from moot.deploy.runs.nested_settings import merge_settings, nested
from moot.deploy.runs.validation import validate_model
from moot.protocols.errors import ConfigError, RecordError, unknown_name
from moot.protocols.presets.preset import Preset, find_preset
from moot.protocols.regular_files import MOST_TEXT_BYTES, read_regular
from moot.protocols.yaml_file import read_keys_and_values

RECORD_KEYS = frozenset(
    {
        "schema_version",
        "versions",
        "code_revision",
        "protocol_name",
        "settings",
        "bindings",
        "models",
        "simulated",
        "price_table",
        "templates",
        "task_digest",
        "classifier_digest",
        "docs_digest",
        "library",
        "cases",
        *REMARKS,
        SEALED,
        "started_at",
        "sessions",
    }
)
"""Keys of run.yaml that are not configuration; ignored when run.yaml is read as a configuration."""


def _as_members(value: Any) -> Any:
    """Normalize `roles` to lists of mappings, from a model's name, one mapping, or a list of either."""
    if not isinstance(value, Mapping):
        return value
    roles = {}
    for family, members in value.items():
        several = members if isinstance(members, list) else [members]
        roles[str(family)] = [_as_member(one) for one in several]
    return roles


def _as_member(member: Any) -> Any:
    if isinstance(member, RoleBinding):
        return member.model_dump(exclude_unset=True)
    return {"model": member} if isinstance(member, str) else member


def _as_paths(value: Any) -> Any:
    """Normalize one or several paths to strings."""
    if isinstance(value, str | os.PathLike):
        return (os.fspath(value),)
    if isinstance(value, list | tuple):
        return tuple(map(_as_path, value))
    if isinstance(value, Mapping):
        raise ValueError("expected paths; for texts by name use `moot.index`, which returns a library")
    return value


def _as_path(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


PathText = Annotated[str, BeforeValidator(_as_path)]

_MEMBER_KEYS = tuple(name for name in RoleBinding.model_fields if name != "profile")
"""Settings of a member; its profile is detected."""

_CHOICES = {"on": True, "off": False, "auto": None}


def _as_choice(value: Any) -> Any:
    """Parse `on`, `off` and `auto` as True, False and None; YAML itself parses the first two."""
    if isinstance(value, str):
        if value not in _CHOICES:
            raise ValueError(f"expected one of {', '.join(_CHOICES)}, found {value!r}")
        return _CHOICES[value]
    return value


def _field(default: Any, about: str, flag: str | None = None, **bounds: Any) -> Any:
    """Field of a configuration.

    Args:
        about: its description.
        flag: its flag; None derives it from the field's name, an empty string means no flag.
    """
    return Field(default, description=about, json_schema_extra={"flag": flag}, **bounds)


class RunConfig(BaseModel):
    """Configuration of a run; every field has a default.

    A field's description is the help of its flag and its row in the reference.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str = _field("sample", "NAME, NAME:PATH or a FILE of questions; see `moot tasks`.")
    protocol: str = _field("selene", "A protocol, module:Class, or several with commas to compare.")
    preset: str | None = _field(
        None, "The settings of a published paper; explicit settings override them. See `moot protocols NAME`."
    )
    model: str = _field("simulated", "Model of every role without one of its own; see `moot models`.")
    roles: Annotated[dict[str, list[dict[str, Any]]], BeforeValidator(_as_members)] = _field(
        {}, "Models of one role: NAME=MODEL[,MODEL...]; repeatable.", "--role"
    )
    agents: int | None = _field(None, "Number of agents.", ge=1)
    limit: int | None = _field(None, "Run only the first N cases.", ge=1)
    seed: int = _field(0, "Random seed of the run.")
    encoder: str = _field(AUTO, "Text encoder; see `moot encoders`.")
    encoder_key_env: EnvName | None = _field(None, "Environment variable with the key of the encoder's server.", "")
    classifier: PathText | None = _field(None, "A folder made by `moot train-classifier`.", min_length=1)
    docs: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_as_paths)] = _field(
        (), "Documents to search: a file, a folder of them, or a library; repeatable."
    )
    out: PathText | None = _field(
        None, "The record's folder or URI; by default in runs/, from protocol, task, seed and model.", min_length=1
    )
    placement: Placement = _field(
        "actors", "Under Ray: actors, or packed (each moderator runs its own agents in its process)."
    )
    engine: Engine = _field("ray", "ray, or inline for this process alone.")
    address: str | None = _field(
        None, "Address of a Ray cluster, auto for the running one, local for a new one on this machine."
    )
    cluster: GivenClusterSettings = _field(
        ClusterSettings(), "Placement of actors, KEY=VALUE, such as moderators=8; repeatable."
    )
    set: dict[str, Any] = _field({}, "A setting of the protocol, KEY=VALUE; repeatable.")
    prompts: PathText | None = _field(None, "A folder of templates that override the built-in ones.")
    save_tokens: Literal["none", "chosen", "all"] = _field(
        "all", "Recorded log-probabilities, of those that a run requests: none, chosen or all."
    )
    save_reasoning: bool = _field(False, "Also record models' hidden reasoning.", "--save-reasoning")
    reuse: PathText | None = _field(
        None, "Folder of a run whose recorded replies answer identical requests at no cost.", min_length=1
    )
    max_open: int = _field(200, "Maximum number of concurrent debates.", ge=1)
    attended: bool = _field(
        False, "A person decides where the protocol asks for a decision.", "--attended/--unattended"
    )
    retry_failed: bool = _field(False, "Retry failed cases in a new attempt.", "--retry-failed/--no-retry-failed")
    structured: Annotated[bool | None, BeforeValidator(_as_choice)] = _field(
        None, "Constrain replies to JSON schemas: on, off, or auto (default: where the model supports it)."
    )
    temperature: float | None = _field(
        None, "Temperature of every role without one of its own.", ge=0.0, le=2.0, allow_inf_nan=False
    )
    max_reply_tokens: int | None = _field(
        None, "Maximum reply tokens of every role without a `max_tokens` of its own.", ge=1
    )
    requests_per_min: int | None = _field(None, "Maximum requests per minute per model and server.", "--rpm", ge=1)
    tokens_per_min: int | None = _field(None, "Maximum tokens per minute per model and server.", "--tpm", ge=1)
    concurrency: int | None = _field(None, "Maximum concurrent calls per model and server; adaptive by default.", ge=1)
    limits: dict[str, EndpointLimits] = _field({}, "These three limits by model name, where models differ.", "")
    max_cost_usd: float | None = _field(
        None,
        "Stop before the run costs more than this (USD, over all sessions).",
        "--max-cost",
        ge=0,
        allow_inf_nan=False,
    )
    max_tokens: int | None = _field(None, "Stop before the run uses more tokens than this, over all sessions.", ge=1)
    max_unusable: int = _field(
        MOST_UNUSABLE, "Stop if none of the first N asks of a role gets a usable reply; 0 never stops for that.", ge=0
    )
    max_minutes: float | None = _field(None, "Stop this session after this many minutes.", gt=0, allow_inf_nan=False)
    prices: PathText | None = _field(None, "A YAML file of prices; overrides the built-in ones.")
    debate_timeout_s: float | None = _field(
        None, "Fail a debate after this many seconds.", "--debate-timeout", gt=0, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _preset_chooses_the_protocol(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or not isinstance(values.get("preset"), str):
            return values
        chosen = find_preset(values["preset"]).protocol
        named = values.get("protocol", chosen)
        if isinstance(named, str) and chosen not in (name.strip() for name in named.split(",")):
            raise ConfigError(f"preset {values['preset']!r} is for protocol {chosen!r}, not {named!r}")
        return {**values, "protocol": named}

    @classmethod
    def build(
        cls,
        base: RunConfig | Mapping[str, Any] | str | Path | None = None,
        flags: Mapping[str, Any] | None = None,
        flag_of: Callable[[str], str] = lambda key: "",
    ) -> RunConfig:
        """Build a configuration from a YAML file (or another configuration), overridden by flags.

        Args:
            base: a file's path, a configuration or its fields; None for the defaults.
            flags: by field; None means not given. `set` and `cluster` are merged key by key, `roles` family by family.
            flag_of: maps a field among `flags` to its name in errors; an empty string means its key.

        Raises:
            ConfigError: a value is invalid; names the file with line or key, or the flag, and the expected value.
        """
        given, where = _fields_of(base)
        changes = {key: value for key, value in (flags or {}).items() if value is not None}
        for key in {*given, *changes} - cls.model_fields.keys():
            raise _prefixed(where if key in given else "", unknown_name("key", key, cls.model_fields))
        merged = {**given, **changes}
        typed = {key: flag_of(key) for key in changes}
        for key, combine in (("set", merge_settings), ("roles", _merge_roles), ("cluster", merge_cluster_settings)):
            if isinstance(given.get(key), Mapping) and isinstance(changes.get(key), Mapping):
                merged[key] = combine(given[key], changes[key])
                del typed[key]
        config = validate_model(cls, merged, where, typed=typed)
        nested(config.set)
        check_members(config.roles, where)
        return config

    def of_all_roles(self) -> dict[str, Any]:
        """The run's defaults for every role, as fields of `RoleBinding`."""
        defaults = {"structured": self.structured, "temperature": self.temperature, "max_tokens": self.max_reply_tokens}
        return {name: value for name, value in defaults.items() if value is not None}

    def loaded_preset(self) -> Preset | None:
        """The preset; None without one."""
        return None if self.preset is None else find_preset(self.preset)

    def stated(self) -> Preset | None:
        """Deprecated name of `loaded_preset`."""
        warnings.warn("RunConfig.stated is now called loaded_preset", DeprecationWarning, stacklevel=2)
        return self.loaded_preset()

    def preset_for(self, protocol: str) -> str | None:
        """The preset if it belongs to that protocol; else None."""
        preset = self.loaded_preset()
        return self.preset if preset is not None and preset.protocol == protocol else None

    def settings(self) -> dict[str, Any]:
        """The protocol's settings as nested data: the preset's, overridden by `set` and `agents`.

        Raises:
            ConfigError: a setting is given twice.
        """
        settings = nested(self.set)
        if self.agents is not None:
            if settings.get("agents", self.agents) != self.agents:
                raise ConfigError(f"`agents` is given twice: {self.agents} and {settings['agents']!r} in `set`")
            settings["agents"] = self.agents
        preset = self.loaded_preset()
        return settings if preset is None else merge_settings(preset.setting_values(), settings)


_CASE_FILE_SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".parquet", ".txt"})
"""Suffixes of files of cases, which are not configurations."""


def _fields_of(base: RunConfig | Mapping[str, Any] | str | Path | None) -> tuple[dict[str, Any], str]:
    """The given fields, and the prefix of an error message about them."""
    if isinstance(base, str | Path):
        if Path(base).suffix.lower() in _CASE_FILE_SUFFIXES:
            raise ConfigError(f"{base}: expected a YAML configuration; give a file of cases as --task {base}")
        return read_yaml(Path(base)), f"{base}: "
    if isinstance(base, RunConfig):
        return base.model_dump(exclude_unset=True), ""
    return dict(base or {}), ""


def read_yaml(file: Path) -> dict[str, Any]:
    """The keys of a YAML configuration, or of a run.yaml without its record-only keys.

    The seal of a record's own run.yaml counts; in a copy elsewhere, which may be edited, it is a comment.

    Raises:
        ConfigError: it cannot be read, is not a YAML mapping (names the line), or is that of a record and damaged.
    """
    return read_sealed(file) if is_recorded(file) else _read_unsealed(file)


def read_sealed(file: Path) -> dict[str, Any]:
    """As `read_yaml`, of a file that moot sealed.

    Raises:
        ConfigError: it cannot be read, or is damaged.
    """
    try:
        check_seal(file, read_regular(file, MOST_TEXT_BYTES))
    except RecordError as error:
        raise ConfigError(str(error)) from None
    except OSError as error:
        raise ConfigError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from None
    return _read_unsealed(file)


def _read_unsealed(file: Path) -> dict[str, Any]:
    keys = {str(key): value for key, value in read_keys_and_values(file).items()}
    return {k: v for k, v in keys.items() if k not in RECORD_KEYS} if "schema_version" in keys else keys


def check_members(roles: Mapping[str, Iterable[Mapping[str, Any]]], where: str = "") -> None:
    """Check the members of `roles`, but not whether the families exist.

    Raises:
        ConfigError: a family has no members, a key is unknown (the message names the nearest known one), or a value is
            invalid.
    """
    for family, members in roles.items():
        if not members:
            raise ConfigError(f"{where}`roles.{family}`: expected at least one model")
        for member in members:
            for key in member:
                if key not in _MEMBER_KEYS:
                    unknown = unknown_name("key", str(key), _MEMBER_KEYS)
                    raise _prefixed(f"{where}`roles.{family}`: ", unknown)
            binding = validate_model(RoleBinding, member, f"{where}roles.{family}: ")
            fields = binding.model_dump(include=set(ModelBinding.model_fields))
            validate_model(ModelBinding, fields, f"{where}roles.{family}: ")


def _merge_roles(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    return {**_as_members(below), **_as_members(above)}


def _prefixed(where: str, error: ConfigError) -> ConfigError:
    return ConfigError(f"{where}{error}")
