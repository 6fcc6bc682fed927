"""Comparison runs (`--protocol A,B`): one configuration per protocol, and the common fields that a protocol drops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moot.actors.record.store.uri import below
from moot.deploy.runs.nested_settings import nested
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.run_folders import default_out, run_name
from moot.protocols.base import DebateProtocol
from moot.protocols.errors import ConfigError
from moot.protocols.registry import PROTOCOLS, make_protocol
from moot.protocols.tasks import open_task


def configs_by_protocol(config: RunConfig, names: Sequence[str]) -> list[RunConfig]:
    """Configurations by protocol, each with the folder OUT/PROTOCOL.

    `agents`, `roles`, `docs` and `classifier` apply only to the protocols that use them, and a protocol gets at most as
    many members of a role as it asks, so that one command can compare a debate with a single agent; `unused_roles`
    lists what was dropped. A setting `PROTOCOL.KEY` applies to that protocol only, and overrides `KEY`.

    Raises:
        ConfigError: a protocol is unknown, named twice, or does not take a setting; or no protocol uses a role, one
            of its members, documents or a classifier.
    """
    if not all(names) or len(set(names)) < len(names):
        raise ConfigError(f"protocol {config.protocol!r}: expected different names between the commas")
    out = config.out or default_out(run_name("", config.preset), open_task(config.task).name, config.seed, config.model)
    configs = []
    asked: dict[str, int] = {}
    searched, classified = False, False
    for name in names:
        fixed = name in PROTOCOLS and "agents" in PROTOCOLS[name].fixed
        own_config = config.model_copy(
            update={
                "protocol": name,
                "out": below(out, name.replace(":", "-")),
                "agents": None if fixed else config.agents,
                "preset": config.preset_for(name),
                "set": settings_for(name, names, config.set),
            }
        )
        protocol = _protocol(name, own_config)
        searched, classified = searched or protocol.reads_documents, classified or protocol.classifies
        roles = _roles_for(protocol, config)
        asked |= {family: max(asked.get(family, 0), len(members)) for family, members in roles.items()}
        changes = {
            "roles": roles,
            "docs": config.docs if protocol.reads_documents else (),
            "classifier": config.classifier if protocol.classifies else None,
        }
        configs.append(own_config.model_copy(update=changes))
    _check_all_are_asked(config, asked)
    if config.docs and not searched:
        raise ConfigError("--docs: none of these protocols searches documents")
    if config.classifier and not classified:
        raise ConfigError("--classifier: none of these protocols uses one")
    return configs


def unused_roles(config: RunConfig, own_config: RunConfig) -> list[str]:
    """Notices about the preset and the roles of a common configuration that one of its protocols does not use."""
    lines = []
    if config.preset is not None and own_config.preset is None:
        lines.append(f"{own_config.protocol} runs without preset {config.preset!r}, which is another protocol's")
    for family, members in config.roles.items():
        asked = len(own_config.roles.get(family, ()))
        if not asked:
            lines.append(f"{own_config.protocol} has no role {family!r}: it runs without")
        elif asked < len(members):
            lines.append(f"{own_config.protocol} asks {asked} of {len(members)} members of {family!r}: the first")
    return lines


def settings_for(name: str, names: Sequence[str], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings for one of the protocols; unchanged if no key names a protocol.

    Raises:
        ConfigError: a key names a protocol that is not part of the run.
    """
    common: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, value in _dotted(nested(given)):
        owner = next((each for each in names if key.startswith(f"{each}.")), None)
        if owner is None and (other := key.partition(".")[0]) in PROTOCOLS:
            raise ConfigError(f"setting {key!r}: protocol {other!r} is not part of this run: {', '.join(names)}")
        if owner is None:
            common[key] = value
        elif owner == name:
            own[key.removeprefix(f"{name}.")] = value
    alike = len(common) == sum(1 for _ in _dotted(nested(given)))
    return given if alike else {**common, **own}


def _dotted(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _protocol(name: str, own_config: RunConfig) -> DebateProtocol:
    make_protocol(name)  # an unknown protocol is not reported as an error of a setting
    try:
        return make_protocol(name, own_config.settings())
    except ConfigError as error:
        hint = "`--set PROTOCOL.KEY=VALUE` sets it for one protocol"
        raise ConfigError(f"protocol {name!r}: {error}; {hint}") from error


def _roles_for(protocol: DebateProtocol, config: RunConfig) -> dict[str, list[dict[str, Any]]]:
    max_members = protocol.most_members
    return {
        family: config.roles[family][: max_members.get(family)] for family in protocol.roles if family in config.roles
    }


def _check_all_are_asked(config: RunConfig, asked: Mapping[str, int]) -> None:
    for family, members in config.roles.items():
        if family not in asked:
            raise ConfigError(f"none of these protocols asks the role {family!r}")
        if asked[family] < len(members):
            raise ConfigError(
                f"role {family!r} has {len(members)} members: none of these protocols asks more than {asked[family]}"
            )
