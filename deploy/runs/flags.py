"""The flags of `moot run`: what each key is called there, and the repeatable ones: `--role`, `--set`, `--cluster`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from moot.actors.telemetry.redaction import redact
from moot.deploy.runs.config import RunConfig
from moot.protocols.errors import ConfigError
from moot.protocols.yaml_file import parsed_yaml


def flags_of(key: str) -> str:
    """How a field of a run is given on the command line, as `--on/--off` where it is switched; empty: it is not.

    >>> flags_of("requests_per_min"), flags_of("max_tokens"), flags_of("limits")
    ('--rpm', '--max-tokens', '')
    """
    info = RunConfig.model_fields.get(key)
    extra = None if info is None else info.json_schema_extra
    flags = extra.get("flag") if isinstance(extra, dict) else None
    return f"--{key.replace('_', '-')}" if flags is None else str(flags)


def flag_of(key: str) -> str:
    """What an error calls a key that was given as a flag."""
    return flags_of(key).partition("/")[0]


def help_of(key: str) -> str:
    """What a field of a run says of itself, and its default."""
    info = RunConfig.model_fields[key]
    about = str(info.description)
    default = info.default
    is_told = isinstance(default, str | int) and not isinstance(default, bool)
    return f"{about.removesuffix('.')} (default: {default})." if is_told else about


def parse_roles(flags: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """`--role NAME=MODEL[,MODEL...]` flags by family.

    >>> parse_roles(["judge=openai/a,openai/b"])
    {'judge': [{'model': 'openai/a'}, {'model': 'openai/b'}]}

    Raises:
        ConfigError: a flag has another form, or a family is given twice.
    """
    roles: dict[str, list[dict[str, Any]]] = {}
    for flag in flags:
        family, equals, models = flag.partition("=")
        names = _models_of(models)
        if not (family.strip() and equals and all(names)):
            raise ConfigError(f"--role {redact(flag)!r}: expected NAME=MODEL[,MODEL...], such as judge=simulated")
        if family.strip() in roles:
            raise ConfigError(f"--role {family.strip()} is given twice: list its models with commas")
        roles[family.strip()] = [{"model": name} for name in names]
    return roles


def _models_of(models: str) -> list[str]:
    """The models between commas; those between the servers of one URL do not count.

    >>> _models_of("openai/a,http://x:1,y:2/v1#m,simulated")
    ['openai/a', 'http://x:1,y:2/v1#m', 'simulated']
    """
    found: list[str] = []
    for part in models.split(","):
        whole = not found or not found[-1].startswith(("http://", "https://")) or "#" in found[-1]
        found = [*found, part.strip()] if whole else [*found[:-1], f"{found[-1]},{part.strip()}"]
    return found


def parse_settings(flags: Iterable[str], name: str = "--set", such_as: str = "gate.tau_d=0.2") -> dict[str, Any]:
    """`--set KEY=VALUE` flags, or those of another `name`; a value is read as YAML.

    >>> parse_settings(["gate.tau_d=0.2", "gate.intrinsic=none", "both_branches=true"])
    {'gate.tau_d': 0.2, 'gate.intrinsic': 'none', 'both_branches': True}

    Raises:
        ConfigError: a flag has another form, or a key is given twice.
    """
    settings: dict[str, Any] = {}
    for flag in flags:
        key, equals, text = flag.partition("=")
        key = key.strip()
        if not (key and equals):
            raise ConfigError(f"{name} {flag!r}: expected KEY=VALUE, such as {such_as}")
        if key in settings:
            raise ConfigError(f"{name} {key} is given twice")
        settings[key] = read_value(text, f"{name} {flag!r}")
    return settings


def read_value(text: str, where: str) -> Any:
    """A setting's value as YAML reads it.

    >>> read_value("0.2", "--set gate.tau_d=0.2"), read_value("off", "--set gate.tau_d=off")
    (0.2, False)

    Args:
        where: what an error begins with.

    Raises:
        ConfigError: it is not valid YAML.
    """
    try:
        return parsed_yaml(text) if text.strip() else ""
    except (yaml.YAMLError, ValueError):
        raise ConfigError(f"{where}: the value is not valid YAML") from None
