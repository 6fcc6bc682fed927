"""What is asked of the models before a run starts: a key, a server that answers, log-probabilities where needed."""

from __future__ import annotations

from moot.actors.household import model_binding
from moot.actors.models.interface import Model
from moot.actors.models.probe import probe
from moot.actors.models.resolve import ModelBinding, make_model
from moot.actors.roles import RoleBinding
from moot.deploy.running.prepare import Prepared
from moot.protocols.errors import CapabilityMissing, ConfigError


async def check_models(prepared: Prepared, *, network: bool = True) -> None:
    """Ask every distinct model of the run whether it can be used.

    Args:
        network: False makes the models, so that a wrong setting is found, and asks nobody.

    Raises:
        ConfigError: a model's setting is malformed, or too many alternatives are asked of it.
        MissingKey: naming the environment variable.
        ModelUnavailable: a server does not answer or refuses us.
        CapabilityMissing: no log-probabilities, though the protocol needs them.
    """
    wanted: dict[ModelBinding, list[RoleBinding]] = {}
    for member in prepared.members:
        wanted.setdefault(model_binding(member), []).append(member)
    needed = prepared.protocol.needs_logprobs
    for binding, roles in wanted.items():
        await _check(binding, roles, prepared.config.seed, needed, network)


async def _check(
    binding: ModelBinding, roles: list[RoleBinding], seed: int, needs_logprobs: bool, network: bool
) -> None:
    model = make_model(binding, seed=seed, answer_key=None)
    try:
        most = model.capabilities.max_alternatives
        asked = max(role.top_logprobs or 0 for role in roles)
        if needs_logprobs and asked and not most:
            raise _no_logprobs(model)
        if asked > most:
            raise ConfigError(f"model {model.name!r} gives at most {most} alternatives per token, not {asked}")
        if not network:
            return
        await model.check()
        if model.capabilities.served:
            await _probe(model, roles, needs_logprobs and bool(asked))
    finally:
        await model.close()


async def _probe(model: Model, roles: list[RoleBinding], needs_logprobs: bool) -> None:
    """Try a call of the role that asks for most."""
    role = max(roles, key=lambda member: member.top_logprobs or 0)
    if not await probe(model, role.decoding(), role.timeout_s) and needs_logprobs:
        raise _no_logprobs(model)


def _no_logprobs(model: Model) -> CapabilityMissing:
    return CapabilityMissing(
        f"model {model.name!r} gives no log-probabilities, which the gate needs: go on without them with "
        "`--set gate.intrinsic=none`, or estimate them from further replies with `--set gate.intrinsic=resampled`"
    )
