"""Role bindings of a run: models and decoding by role family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from moot.actors.agent.roles import RoleBinding
from moot.actors.models.resolve import canonical_model
from moot.actors.models.small.spec import is_small
from moot.deploy.runs.prior_runs import is_simulated, recorded_members, replayed_run
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.base import DebateProtocol
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.registry import PROTOCOLS

ALTERNATIVES = 5
"""Alternatives per token that agents request if the protocol needs log-probabilities."""

SMALL_REPETITION_PENALTY = 1.1
"""Default repetition penalty of `small`: at 1 it repeats itself up to its token limit."""

SMALL_TIMEOUT_S = 600.0
"""Default timeout of `small` in seconds: a busy CPU generates few tokens a second."""


def model_defaults(model: str) -> dict[str, float]:
    """Default decoding of a model, as fields of `RoleBinding`; empty for most models."""
    if not is_small(model):
        return {}
    return {"timeout_s": SMALL_TIMEOUT_S, "repetition_penalty": SMALL_REPETITION_PENALTY}


def bind_roles(config: RunConfig, protocol: DebateProtocol) -> dict[str, list[RoleBinding]]:
    """Bind every role family of the protocol to models and decoding.

    A member's maximum reply length is the configured one, else the recorded one of a replay, else the family's in the
    protocol's `reply_tokens`, else `RoleBinding`'s. The same applies to temperature and top-p, with the protocol's
    `temperatures` and `top_ps`; a model that supports none gets no default. A preset's decoding replaces the
    protocol's. If each member has its own temperature, the members of a smaller family are repeated cyclically. A
    protocol that asks only some of a family's members declares their number as `most_members`; a replay may have more.

    Raises:
        ConfigError: `roles` names a family that the protocol does not ask, or more members than it asks, or a model's
            name is malformed.
    """
    max_members = protocol.most_members
    for family in config.roles:
        if family not in protocol.roles:
            if family == "judge" and max_members.get("agent") == 1:
                raise ConfigError(f"protocol {protocol.name!r} asks one agent here, and then no judge: leave it out")
            unknown = str(unknown_name("role", family, protocol.roles)).removeprefix("unknown role ")
            raise ConfigError(f"protocol {protocol.name!r} has no role {unknown}")
    stated = config.loaded_preset()
    lengths, temperatures, top_ps = protocol.reply_tokens, protocol.temperatures, protocol.top_ps
    if stated is not None:
        lengths = {**lengths, **stated.decoding_values("max_tokens")}
        temperatures = {**temperatures, **stated.decoding_values("temperature")}
        top_ps = {**top_ps, **stated.decoding_values("top_p")}
    bindings = {}
    for family in protocol.roles:
        members = _members(config, family, {"max_tokens": lengths[family]} if family in lengths else {})
        _check_all_are_asked(family, config.roles.get(family, ()), max_members.get(family), protocol.name)
        if family in temperatures:
            members = _at_temperatures(family, members, temperatures[family], protocol.name)
        if family in top_ps:
            members = [_by_default(member, "top_p", top_ps[family]) for member in members]
        if protocol.needs_logprobs and family in speaking_roles(protocol):
            members = [_with_alternatives(member) for member in members]
        bindings[family] = [member.model_copy(update={"model": canonical_model(member.model)}) for member in members]
    return bindings


def speaking_roles(protocol: DebateProtocol) -> frozenset[str]:
    """Role families whose log-probabilities a protocol reads, and that receive a case's pictures.

    They are its `speakers`; else `agent`, if it has such a role, else all.
    """
    if protocol.speakers is not None:
        return frozenset(protocol.speakers)
    return frozenset({"agent"} if "agent" in protocol.roles else protocol.roles)


def roles_shown_pictures(protocol: DebateProtocol) -> frozenset[str]:
    """Role families that receive a case's pictures: its speakers and, if declared, its judges."""
    judges = frozenset({"judge"} if protocol.judges_see_pictures else ())
    return (speaking_roles(protocol) | judges) & frozenset(protocol.roles)


def _check_all_are_asked(family: str, members: Sequence[object], max_members: int | None, protocol: str) -> None:
    """Check that the protocol asks all members.

    Raises:
        ConfigError: it would never ask some of them.
    """
    if max_members is not None and len(members) > max_members:
        entry = PROTOCOLS.get(protocol)
        counted = entry is not None and "agents" in entry.settings_model.model_fields and "agents" not in entry.fixed
        more = f" (--agents {len(members)} asks them all)" if family == "agent" and counted else ""
        raise ConfigError(
            f"role {family!r} has {len(members)} members: protocol {protocol!r} asks {max_members} only{more}"
        )


def _at_temperatures(
    family: str, members: Sequence[RoleBinding], temperatures: float | Sequence[float] | None, protocol: str
) -> list[RoleBinding]:
    """Members with the protocol's temperature as their default, the same for all or one for each."""
    if not isinstance(temperatures, Sequence):
        return [_by_default(member, "temperature", temperatures) for member in members]
    _check_all_are_asked(family, members, len(temperatures), protocol)
    return [_by_default(members[i % len(members)], "temperature", each) for i, each in enumerate(temperatures)]


def _by_default(member: RoleBinding, key: Literal["temperature", "top_p"], value: float | None) -> RoleBinding:
    """The member with another default, which is not an explicit setting, unless it has an explicit value."""
    if key in member.model_fields_set:
        return member
    changed = member.model_copy(update={key: value})
    changed.model_fields_set.discard(key)
    return changed


def _members(config: RunConfig, family: str, defaults: Mapping[str, Any]) -> list[RoleBinding]:
    """Bindings of a family. A replayed member is bound as in the recorded run, except for explicit settings.

    A single member is replayed as all recorded members.
    """
    members = []
    given = config.roles.get(family, [{}])
    for number, change in enumerate(given):
        explicit = {"model": config.model, **config.of_all_roles(), **change}
        recorded = recorded_members(explicit["model"], family) or [{}]
        chosen = recorded if len(given) == 1 else [recorded[number % len(recorded)]]
        usual = model_defaults(explicit["model"])
        members += [RoleBinding(**{**usual, **defaults, **each, **explicit}) for each in chosen]
    return members


def self_judging_models(bindings: Mapping[str, Sequence[RoleBinding]], protocol: DebateProtocol) -> list[str]:
    """Models that both debate and judge, each once.

    Simulated models and replays are excluded.
    """
    debating = {(member.model, member.base_url) for family in speaking_roles(protocol) for member in bindings[family]}
    judging = dict.fromkeys((member.model, member.base_url) for member in bindings.get("judge", ()))
    both = dict.fromkeys(model for model, base_url in judging if (model, base_url) in debating)
    return [model for model in both if not is_simulated(model) and replayed_run(model) is None]


def _with_alternatives(binding: RoleBinding) -> RoleBinding:
    """The member with the alternatives that the protocol needs as a default, which is not an explicit setting."""
    if binding.top_logprobs:
        return binding
    changed = binding.model_copy(update={"top_logprobs": ALTERNATIVES})
    changed.model_fields_set.discard("top_logprobs")
    return changed
