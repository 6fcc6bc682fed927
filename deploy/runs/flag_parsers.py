"""Flags of a run: the flag of each field, and parsers of the repeatable flags `--role`, `--set` and `--cluster`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from moot.actors.telemetry.redaction import redact
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.errors import ConfigError
from moot.protocols.yaml_file import parsed_yaml


def flags_of(key: str) -> str:
    """Flag of a field, `--on/--off` for a switch; empty if it has none.

    >>> flags_of("requests_per_min"), flags_of("max_tokens"), flags_of("limits")
    ('--rpm', '--max-tokens', '')
    """
    info = RunConfig.model_fields.get(key)
    extra = None if info is None else info.json_schema_extra
    flags = extra.get("flag") if isinstance(extra, dict) else None
    return f"--{key.replace('_', '-')}" if flags is None else str(flags)


def flag_of(key: str) -> str:
    """Flag of a field in error messages: of a switch, the one that turns it on."""
    return flags_of(key).partition("/")[0]


def help_of(key: str) -> str:
    """Help text of a field, with its default."""
    info = RunConfig.model_fields[key]
    about = str(info.description)
    default = info.default
    shows_default = isinstance(default, str | int) and not isinstance(default, bool)
    return f"{about.removesuffix('.')} (default: {default})." if shows_default else about


def parse_roles(flags: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Parse `--role NAME=MODEL[,MODEL...]` flags into bindings by role family.

    >>> parse_roles(["judge=openai/a,openai/b"])
    {'judge': [{'model': 'openai/a'}, {'model': 'openai/b'}]}

    Raises:
        ConfigError: a flag is malformed, or a family is given twice.
    """
    roles: dict[str, list[dict[str, Any]]] = {}
    for flag in flags:
        family, equals, models = flag.partition("=")
        names = _models_of(models)
        if not (family.strip() and equals and all(names)):
            raise ConfigError(f"--role {redact(flag)!r}: expected NAME=MODEL[,MODEL...], such as judge=simulated")
        if family.strip() in roles:
            raise ConfigError(f"--role {family.strip()} is given twice: separate its models by commas")
        roles[family.strip()] = [{"model": name} for name in names]
    return roles


def _models_of(models: str) -> list[str]:
    """Split at commas, except those between the servers of one URL.

    >>> _models_of("openai/a,http://x:1,y:2/v1#m,simulated")
    ['openai/a', 'http://x:1,y:2/v1#m', 'simulated']
    """
    names: list[str] = []
    for part in models.split(","):
        is_new = not names or not names[-1].startswith(("http://", "https://")) or "#" in names[-1]
        names = [*names, part.strip()] if is_new else [*names[:-1], f"{names[-1]},{part.strip()}"]
    return names


def parse_settings(flags: Iterable[str], name: str = "--set", such_as: str = "gate.tau_d=0.2") -> dict[str, Any]:
    """Parse `--set KEY=VALUE` flags, or those of another flag; a value is YAML.

    >>> parse_settings(["gate.tau_d=0.2", "gate.intrinsic=none", "both_branches=true"])
    {'gate.tau_d': 0.2, 'gate.intrinsic': 'none', 'both_branches': True}

    Args:
        flags: their arguments.
        name: the flag, for error messages.
        such_as: an example argument, for error messages.

    Raises:
        ConfigError: a flag is malformed, or a key is given twice.
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
    """Parse a setting's value as YAML.

    >>> read_value("0.2", "--set gate.tau_d=0.2"), read_value("off", "--set gate.tau_d=off")
    (0.2, False)

    Args:
        where: prefix of an error message.

    Raises:
        ConfigError: it is not valid YAML.
    """
    try:
        return parsed_yaml(text) if text.strip() else ""
    except (yaml.YAMLError, ValueError):
        raise ConfigError(f"{where}: the value is not valid YAML") from None
