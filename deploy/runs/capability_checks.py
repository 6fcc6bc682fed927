"""Checks of a model's declared capabilities against the needs of its roles and the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from moot.actors.agent.roles import RoleBinding
from moot.actors.models.interface import Model
from moot.actors.models.resolve import is_replay
from moot.protocols.base import DebateProtocol
from moot.protocols.errors import CapabilityMissing, ConfigError


def check_declared(model: Model, roles: list[RoleBinding], protocol: DebateProtocol) -> None:
    """Check that the model declares the capabilities that its roles and the protocol need.

    Raises:
        CapabilityMissing: it lacks one of them.
        ConfigError: it does not support a role's setting.
    """
    max_alternatives = model.capabilities.max_alternatives
    requested = max(role.top_logprobs or 0 for role in roles)
    if protocol.needs_logprobs and requested and not max_alternatives:
        raise no_logprobs(model, protocol)
    if requested > max_alternatives:
        raise ConfigError(
            f"model {model.name!r} gives at most {max_alternatives} alternatives per token, not {requested}"
        )
    check_schema_support(model, roles)
    replayed = is_replay(model.name)  # early stopping was applied when its replies were recorded
    if any(role.early_stop for role in roles) and not (replayed or (max_alternatives and model.capabilities.streaming)):
        raise CapabilityMissing(f"model {model.name!r} does not stream log-probabilities: leave `early_stop` out")
    _check_sampling(model, roles)


def check_schema_support(model: Model, roles: Sequence[RoleBinding]) -> None:
    """Check that the model supports constrained decoding, if a role requires it.

    Raises:
        CapabilityMissing: it does not.
    """
    if model.capabilities.structured_output == "no" and any(role.structured for role in roles):
        raise CapabilityMissing(
            f"model {model.name!r} does not support structured output: leave `structured: true` out of its roles"
        )


def _check_sampling(model: Model, roles: list[RoleBinding]) -> None:
    """Check that the model supports all explicit settings; unsupported defaults are omitted from requests.

    Raises:
        ConfigError: it does not support one.
    """
    max_temperature = model.capabilities.max_temperature
    for role in roles:
        for name in ("seed", "stop", "repetition_penalty", "reasoning_effort", "extra"):
            if getattr(role, name) not in (None, (), {}) and name not in model.capabilities.settings:
                raise ConfigError(f"model {model.name!r} takes no `{name}`: leave it out of the role's settings")
        effort, efforts = role.reasoning_effort, model.capabilities.efforts
        if effort is not None and efforts and effort not in efforts:
            known = ", ".join(efforts)
            raise ConfigError(f"model {model.name!r} takes a `reasoning_effort` of {known}, not {effort!r}")
        written = [name for name in ("temperature", "top_p") if getattr(role, name) is not None]
        if max_temperature is None:
            for name in sorted(role.model_fields_set.intersection(written)):
                raise ConfigError(f"model {model.name!r} takes no `{name}`: leave it out of the role's settings")
        elif role.temperature is not None and role.temperature > max_temperature:
            raise ConfigError(
                f"model {model.name!r} takes a temperature of at most {max_temperature:g}, not {role.temperature:g}"
            )


def no_logprobs(model: Model, protocol: DebateProtocol, lacking: Sequence[str] = ()) -> CapabilityMissing:
    """Error for a model without log-probabilities that the protocol needs, with the setting that avoids them if any.

    Args:
        model: the model.
        protocol: of the run.
        lacking: names of its servers that give none, if it is a pool.
    """
    needed = f"model {model.name!r} gives no log-probabilities, which protocol {protocol.name!r} needs"
    if lacking and model.name not in lacking:
        needed += f" (none at {', '.join(lacking)}; a pool needs them of every server: leave these servers out)"
    return CapabilityMissing(f"{needed}: {protocol.without_logprobs}" if protocol.without_logprobs else needed)
