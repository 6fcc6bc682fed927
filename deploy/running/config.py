"""What a user can configure about a run: the fields, reading them from YAML and from flags, one-line errors.

A configuration names keys only by the environment variable that holds them (`api_key_env`), so it may be printed,
written into the record and sent to every actor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from moot.actors.encoders.resolve import AUTO
from moot.actors.limits.settings import EndpointLimits
from moot.actors.models.resolve import EnvName, ModelBinding
from moot.actors.placement import GivenPlacing, Placing, overlaid
from moot.actors.roles import RoleBinding
from moot.actors.spec import Engine, Placement
from moot.deploy.running.validated import validated
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.presets.preset import Preset, find_preset
from moot.protocols.yaml_file import read_keys_and_values

RECORD_KEYS = frozenset(
    {
        "schema_version",
        "versions",
        "code_revision",
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
        "started_at",
        "sessions",
    }
)
"""What run.yaml holds beside the configuration; passed over when it is read as one."""


def _as_members(value: Any) -> Any:
    """`roles:` as lists of mappings: a model's name alone, one mapping, or a list of either."""
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
    """Paths as texts: one, or several."""
    if isinstance(value, str | os.PathLike):
        return (os.fspath(value),)
    if isinstance(value, list | tuple):
        return tuple(os.fspath(each) if isinstance(each, os.PathLike) else each for each in value)
    if isinstance(value, Mapping):
        raise ValueError("expected paths; texts by name go through `moot.index`, which gives a library")
    return value


_OF_MEMBERS = tuple(name for name in RoleBinding.model_fields if name != "profile")
"""What can be said of a member; its profile is found out."""


_CHOICES = {"on": True, "off": False, "auto": None}


def _as_choice(value: Any) -> Any:
    """`on`, `off` and `auto` as True, False and None; YAML reads the first two so by itself."""
    if isinstance(value, str):
        if value not in _CHOICES:
            raise ValueError(f"expected one of {', '.join(_CHOICES)}, found {value!r}")
        return _CHOICES[value]
    return value


class RunConfig(BaseModel):
    """One run as its user wants it; every field has a default.

    Attributes:
        task: `NAME`, `NAME:PATH` or a file of questions; `moot tasks` lists the names.
        protocol: a built-in protocol's name, or `module:Class`.
        preset: what a paper states of its protocol, below whatever is said here; it also chooses the protocol.
        model: serves every role that `roles` does not bind.
        roles: by role family, what differs from the defaults of `RoleBinding`: one mapping or a list of them.
        agents: how many agents answer; the setting `agents` of the protocol.
        limit: only the first so many cases; None for all.
        seed: of the run; everything random hangs on it.
        encoder: turns texts into vectors; see `moot encoders`. `auto` is found out once, when the run begins.
        encoder_key_env: environment variable with the key of the encoder's server; None for `OPENAI_API_KEY` with
            `openai/NAME`, and for no key with a URL.
        classifier: a folder that `moot train-classifier` has made, for a protocol that asks one; None for none.
        docs: documents that the debates may search: files, folders of them, or the folder of a library alone.
        out: the run's folder, or its URI in a store; None for `runs/PROTOCOL-TASK-sSEED`, and `-MODEL` unless that is
            `simulated`.
        placement: `actors` or `packed`, for the engine `ray`.
        engine: `ray`, or `inline` for this process alone.
        address: the Ray cluster to join; None joins the one that this process is connected to, or that `RAY_ADDRESS`
            names, as in a job of Ray's, and starts a local one where there is none.
        cluster: how many processes there are and where they live, with the engine `ray`; nested or with dotted keys.
        set: settings of the protocol, nested or with dotted keys.
        prompts: a folder of templates that replace the package's.
        save_tokens: how much of the token log-probabilities is recorded.
        save_reasoning: whether models' hidden reasoning is recorded, as far as servers give it.
        reuse: another run's folder, whose replies answer what is asked in just the same way; None for none.
        max_open: most debates open at once.
        attended: whether a person answers where a protocol asks for one; such debates wait for `moot decide`.
        retry_failed: open a new attempt for every failed case.
        structured: whether replies are held to JSON schemas, for every role that does not say: `on` refuses a model
            that cannot, `off` leaves them free, `auto` tries it.
        temperature, max_reply_tokens: of every role that does not give its own `temperature` or `max_tokens`.
        requests_per_min, tokens_per_min, concurrency: bounds on every endpoint, over all processes of the run; without
            them the concurrency adapts to what the server takes.
        limits: the same by model name, where models differ.
        max_cost_usd, max_tokens, max_minutes: the run stops by itself before it uses more, over all its sessions (the
            minutes: in this one); the same command with a larger bound goes on. `max_cost_usd` 0 is for models that
            cost nothing.
        prices: a YAML file of prices, over the package's own.
        debate_timeout_s: seconds after which a debate is failed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str = "sample"
    protocol: str = "selene"
    preset: str | None = None
    model: str = "simulated"
    roles: Annotated[dict[str, list[dict[str, Any]]], BeforeValidator(_as_members)] = {}
    agents: int | None = Field(default=None, ge=1)
    limit: int | None = Field(default=None, ge=1)
    seed: int = 0
    encoder: str = AUTO
    encoder_key_env: EnvName | None = None
    classifier: str | None = Field(default=None, min_length=1)
    docs: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_as_paths)] = ()
    out: str | None = Field(default=None, min_length=1)
    placement: Placement = "actors"
    engine: Engine = "ray"
    address: str | None = None
    cluster: GivenPlacing = Placing()
    set: dict[str, Any] = {}
    prompts: str | None = None
    save_tokens: Literal["none", "chosen", "all"] = "all"
    save_reasoning: bool = False
    reuse: str | None = Field(default=None, min_length=1)
    max_open: int = Field(default=200, ge=1)
    attended: bool = False
    retry_failed: bool = False
    structured: Annotated[bool | None, BeforeValidator(_as_choice)] = None
    temperature: float | None = Field(default=None, ge=0.0, le=2.0, allow_inf_nan=False)
    max_reply_tokens: int | None = Field(default=None, ge=1)
    requests_per_min: int | None = Field(default=None, ge=1)
    tokens_per_min: int | None = Field(default=None, ge=1)
    concurrency: int | None = Field(default=None, ge=1)
    limits: dict[str, EndpointLimits] = {}
    max_cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, ge=1)
    max_minutes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    prices: str | None = None
    debate_timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _preset_chooses_the_protocol(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or not isinstance(values.get("preset"), str):
            return values
        chosen = find_preset(values["preset"]).protocol
        named = values.get("protocol", chosen)
        if isinstance(named, str) and chosen not in (name.strip() for name in named.split(",")):
            raise ConfigError(f"preset {values['preset']!r} is one of protocol {chosen!r}, not of {named!r}")
        return {**values, "protocol": named}

    @classmethod
    def build(
        cls,
        base: RunConfig | Mapping[str, Any] | str | Path | None = None,
        flags: Mapping[str, Any] | None = None,
        flag_of: Callable[[str], str] = lambda key: "",
    ) -> RunConfig:
        """A configuration from a YAML file (or another configuration), and flags, which win over it.

        Args:
            base: a file's path, a configuration or its fields; None for the defaults.
            flags: by field; None means not given. `set` and `cluster` are merged key by key, `roles` family by family.
            flag_of: from a field to what an error calls it when it is one of `flags`; an empty string is its key.

        Raises:
            ConfigError: naming the file and the line or the key, or the flag, and what was expected.
        """
        given, where = _fields_of(base)
        changes = {key: value for key, value in (flags or {}).items() if value is not None}
        for key in {*given, *changes} - cls.model_fields.keys():
            raise _prefixed(where if key in given else "", unknown_name("key", key, cls.model_fields))
        merged = {**given, **changes}
        typed = {key: flag_of(key) for key in changes}
        for key, combine in (("set", _merge_settings), ("roles", _merge_roles), ("cluster", overlaid)):
            if isinstance(given.get(key), Mapping) and isinstance(changes.get(key), Mapping):
                merged[key] = combine(given[key], changes[key])
                del typed[key]
        config = validated(cls, merged, where, typed=typed)
        nested(config.set)
        check_members(config.roles, where)
        return config

    def of_all_roles(self) -> dict[str, Any]:
        """What the run says of every role that does not say it itself, as fields of `RoleBinding`."""
        said = {"structured": self.structured, "temperature": self.temperature, "max_tokens": self.max_reply_tokens}
        return {name: value for name, value in said.items() if value is not None}

    def stated(self) -> Preset | None:
        """The preset; None without one."""
        return None if self.preset is None else find_preset(self.preset)

    def preset_for(self, protocol: str) -> str | None:
        """The preset where it is one of that protocol; else None."""
        stated = self.stated()
        return self.preset if stated is not None and stated.protocol == protocol else None

    def settings(self) -> dict[str, Any]:
        """The protocol's settings as nested data: the preset's, and over them what is set, `agents` included.

        Raises:
            ConfigError: a setting is given twice.
        """
        settings = nested(self.set)
        if self.agents is not None:
            if settings.get("agents", self.agents) != self.agents:
                raise ConfigError(f"`agents` is given twice: {self.agents} and {settings['agents']!r} in `set`")
            settings["agents"] = self.agents
        stated = self.stated()
        return settings if stated is None else _merge_settings(stated.setting_values(), settings)


def _fields_of(base: RunConfig | Mapping[str, Any] | str | Path | None) -> tuple[dict[str, Any], str]:
    """The fields that are given, and what an error about them begins with."""
    if isinstance(base, str | Path):
        return read_yaml(Path(base)), f"{base}: "
    if isinstance(base, RunConfig):
        return base.model_dump(exclude_unset=True), ""
    return dict(base or {}), ""


def read_yaml(file: Path) -> dict[str, Any]:
    """The keys of a YAML configuration, or of a run's run.yaml without what only a record holds.

    Raises:
        ConfigError: the file cannot be read or is no YAML mapping; names the line.
    """
    keys = {str(key): value for key, value in read_keys_and_values(file).items()}
    return {k: v for k, v in keys.items() if k not in RECORD_KEYS} if "schema_version" in keys else keys


def check_members(roles: Mapping[str, Iterable[Mapping[str, Any]]], where: str = "") -> None:
    """Check what `roles` says of each member, families aside.

    Raises:
        ConfigError: a family without members, an unknown key with the nearest known one, or a wrong value.
    """
    for family, members in roles.items():
        if not members:
            raise ConfigError(f"{where}`roles.{family}`: expected at least one model")
        for member in members:
            for key in member:
                if key not in _OF_MEMBERS:
                    unknown = unknown_name("key", str(key), _OF_MEMBERS)
                    raise _prefixed(f"{where}`roles.{family}`: ", unknown)
            binding = validated(RoleBinding, member, f"{where}roles.{family}: ")
            named = binding.model_dump(include=set(ModelBinding.model_fields))
            validated(ModelBinding, named, f"{where}roles.{family}: ")


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a tree, dotted keys opened.

    >>> nested({"gate.tau_d": 0.2, "gate": {"tau_m": 0.1}})
    {'gate': {'tau_d': 0.2, 'tau_m': 0.1}}

    Raises:
        ConfigError: a setting is given twice, or is a value here and a group there.
    """
    tree: dict[str, Any] = {}
    for key, value in settings.items():
        *path, last = str(key).split(".")
        for part in reversed(path):
            value, last = {last: value}, part
        _graft(tree, last, value, "")
    return tree


def _graft(tree: dict[str, Any], name: str, value: Any, prefix: str) -> None:
    if isinstance(value, Mapping):
        branch = tree.setdefault(name, {})
        if not isinstance(branch, dict):
            raise ConfigError(f"setting `{prefix}{name}` is given twice")
        for key, inner in nested(value).items():
            _graft(branch, key, inner, f"{prefix}{name}.")
    elif name in tree:
        raise ConfigError(f"setting `{prefix}{name}` is given twice")
    else:
        tree[name] = value


def _merge_settings(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    return _overlaid(nested(below), nested(above))


def _overlaid(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _overlaid(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged


def _merge_roles(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    return {**_as_members(below), **_as_members(above)}


def _prefixed(where: str, error: ConfigError) -> ConfigError:
    return ConfigError(f"{where}{error}")
