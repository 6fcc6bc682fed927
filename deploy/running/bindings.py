"""Who stands behind the roles of a run: models and decoding by role family."""

from __future__ import annotations

from moot.actors.models.resolve import ModelSpec, canonical_model
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.roles import RoleBinding
from moot.deploy.running.config import RunConfig
from moot.deploy.running.recorded import recorded_members, replayed_run
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.floor import DebateProtocol

ALTERNATIVES = 5
"""Alternatives per token that agents ask for when the protocol needs log-probabilities."""


def bind_roles(config: RunConfig, protocol: DebateProtocol) -> dict[str, list[RoleBinding]]:
    """Models and decoding for every role family of the protocol.

    Raises:
        ConfigError: `roles` names a family that the protocol does not ask, or a model's name is malformed.
    """
    for family in config.roles:
        if family not in protocol.roles:
            unknown = str(unknown_name("role", family, protocol.roles)).removeprefix("unknown role ")
            raise ConfigError(f"protocol {protocol.name!r} has no role {unknown}")
    speakers = {"agent"} if "agent" in protocol.roles else set(protocol.roles)
    bindings = {}
    for family in protocol.roles:
        members = _members(config, family, getattr(protocol, "reply_tokens", {}).get(family))
        if protocol.needs_logprobs and family in speakers:
            members = [_with_alternatives(member) for member in members]
        bindings[family] = [member.model_copy(update={"model": canonical_model(member.model)}) for member in members]
    return bindings


def _members(config: RunConfig, family: str, reply_tokens: int | None) -> list[RoleBinding]:
    """A family's bindings. Who is replayed is bound as in the recorded run, but for what is said otherwise here.

    A single member stands for as many as were recorded.

    Args:
        reply_tokens: the longest reply that the protocol needs of the family; None leaves the general default.
    """
    members = []
    needed = {} if reply_tokens is None else {"max_tokens": reply_tokens}
    given = config.roles.get(family, [{}])
    for number, change in enumerate(given):
        named = {"model": config.model, **change}
        recorded = recorded_members(named["model"], family) or [{}]
        chosen = recorded if len(given) == 1 else [recorded[number % len(recorded)]]
        members += [RoleBinding(**{**needed, **each, **named}) for each in chosen]
    return members


def _with_alternatives(binding: RoleBinding) -> RoleBinding:
    return binding if binding.top_logprobs else binding.model_copy(update={"top_logprobs": ALTERNATIVES})


def is_simulated(model: str) -> bool:
    """Whether a model's name is the embedded simulated one's, or says that its server or its run is one."""
    spec = ModelSpec.parse(model)
    replayed = replayed_run(model)
    if replayed is not None:
        return bool(read_run_yaml(replayed).get("simulated", False))
    return spec.kind == "simulated" or (spec.kind in ("url", "anthropic") and spec.model == "simulated")
