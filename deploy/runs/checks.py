"""What is asked before a run starts: a key, servers that answer, log-probabilities where needed, and a vector."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal

import msgspec
import structlog
from pydantic import BaseModel, ValidationError

from moot.actors.agent.backend_factory import make_model
from moot.actors.agent.roles import RoleBinding
from moot.actors.classifiers.card import BODY
from moot.actors.classifiers.classifier import ResolvedClassifier, body_encoder
from moot.actors.debate.context_factory import model_binding
from moot.actors.encoders.resolve import make_encoder
from moot.actors.models.interface import Model
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.probe import probe
from moot.actors.models.probe_calls import (
    PROBE_RETRIES,
    ExpectedReply,
    OnlyOverResponses,
    ProbeRequest,
    declared_profile,
)
from moot.actors.models.resolve import ModelBinding, is_embedded, is_replay, over_responses
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.runs.bindings import roles_shown_pictures
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.prior_runs import reusable_replies
from moot.protocols.base import DebateProtocol
from moot.protocols.errors import CapabilityMissing, ConfigError, RecordError
from moot.protocols.messages import Decoding
from moot.protocols.replies import Position
from moot.protocols.validation_messages import expected_value

_LOOKED_AT = 2_000
"""Cases whose labels are looked at before a run."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TrialResults:
    """What trial calls found: runs that belong together make each of them once.

    Attributes:
        models: what `probe` gave, by who was asked and for what.
        encoders: those that were asked, with the variable of their key.
    """

    models: dict[tuple[ModelBinding, ProbeRequest], tuple[ModelProfile, bool]] = field(default_factory=dict)
    encoders: set[tuple[str, str | None]] = field(default_factory=set)


async def check_models(prepared: Prepared, *, network: bool = True, trials: TrialResults | None = None) -> Prepared:
    """Ask every distinct model of the run, and its encoder, whether they can be used; trial calls are made once.

    Args:
        network: False makes the models, so that a wrong setting is found, reads what is to be reused, and asks nobody.
        trials: of the runs that this one belongs to; what is found here is added.

    Returns:
        The run with what was found of its models; with what the record says of them, where it is resumed.

    Raises:
        ConfigError: a setting of a model or of the encoder is malformed, a model does not take what a role asks, or the
            run whose replies are reused cannot be read.
        MissingKey: naming the environment variable.
        ModelUnavailable: a server does not answer or refuses us.
        CapabilityMissing: no log-probabilities, though the protocol needs them; no schemas, though a role wants its
            replies held to one; no pictures, though cases bring some; or a package is not installed.
    """
    wanted: dict[ModelBinding, list[tuple[str, RoleBinding]]] = {}
    for family, members in prepared.bindings.items():
        for member in members:
            wanted.setdefault(model_binding(member), []).append((family, member))
    if prepared.reuse is not None and not network:
        await asyncio.to_thread(reusable_replies, prepared.reuse)
    shown = _shown_pictures(prepared)
    found: dict[_Asked, ModelProfile | None] = {}
    known = await asyncio.to_thread(_known_profiles, prepared) if network else None
    trials = TrialResults() if trials is None else trials
    for binding, roles in wanted.items():
        model = make_model(binding, seed=prepared.config.seed, answer_key=None)
        try:
            if binding in shown and not model.capabilities.images:
                raise CapabilityMissing(f"model {model.name!r} takes no pictures, but the cases bring some")
            _check_declared(model, [role for _, role in roles], prepared.protocol)
            if network:
                await model.check()
                _check_schema_support(model, [role for _, role in roles])
                if known is not None:
                    found[_asked(binding)] = known.get(_asked(binding))
                elif not is_embedded(binding.model):
                    found[_asked(binding)] = await _probe_model(model, binding, roles, prepared, trials)
                elif model.capabilities.structured_output != "no":
                    found[_asked(binding)] = declared_profile(model, model.capabilities.dialect)
        finally:
            await model.close()
    await _check_encoder(prepared, network, trials)
    if prepared.classifier is not None and network:
        await _check_body(prepared.classifier)
    return _with_profiles(prepared, found) if found else prepared


_Asked = tuple[str, str | None]
"""A model and its server. Where its key is found does not count: that may change while a run is resumed."""


def _asked(binding: ModelBinding | RoleBinding) -> _Asked:
    return binding.model, binding.base_url


def _known_profiles(prepared: Prepared) -> Mapping[_Asked, ModelProfile | None] | None:
    """What the record, or an earlier trial, says of the run's models; None where they are still to be tried."""
    recorded = recorded_profiles(prepared.record)
    if recorded is None and prepared.trials_done:
        return {_asked(member): member.profile for members in prepared.bindings.values() for member in members}
    return recorded


def recorded_profiles(run: RunFolder) -> dict[_Asked, ModelProfile | None] | None:
    """What a run's record says of its models, so that they are asked as before; None where there is no run yet.

    A record that is older says None of each: they are asked as it was usual then.

    Raises:
        RecordError: run.yaml cannot be read.
    """
    if not run.exists():
        return None
    families = read_run_yaml(run).get("bindings")
    members = [one for each in families.values() for one in each] if isinstance(families, Mapping) else []
    try:
        bindings = [RoleBinding.model_validate(member) for member in members]
    except ValidationError as error:
        raise RecordError(
            f"{run.path / 'run.yaml'}: `bindings` cannot be read: {expected_value(error.errors()[0])}"
        ) from None
    return {_asked(binding): binding.profile for binding in bindings}


def _with_profiles(prepared: Prepared, found: Mapping[_Asked, ModelProfile | None]) -> Prepared:
    bindings = {
        family: [_with_profile(member, found) for member in members] for family, members in prepared.bindings.items()
    }
    return replace(prepared, bindings=bindings, trials_done=True)


def _with_profile(member: RoleBinding, found: Mapping[_Asked, ModelProfile | None]) -> RoleBinding:
    """The member as its model was found; whoever is replayed keeps the recorded profile of its own."""
    if is_replay(member.model):
        return member
    return member.model_copy(update={"profile": found.get(_asked(member))})


def _shown_pictures(prepared: Prepared) -> set[ModelBinding]:
    """The models that are sent the cases' pictures; none when that cannot be known before the cases are read."""
    if prepared.checked is None or not prepared.checked.pictured:
        return set()
    if not any(labelled.case.images for labelled in prepared.cases()):
        return set()
    return {
        model_binding(member)
        for family in roles_shown_pictures(prepared.protocol)
        for member in prepared.bindings[family]
    }


def _check_declared(model: Model, roles: list[RoleBinding], protocol: DebateProtocol) -> None:
    """Whether the model declares what its roles and the protocol need."""
    most = model.capabilities.max_alternatives
    asked = max(role.top_logprobs or 0 for role in roles)
    if protocol.needs_logprobs and asked and not most:
        raise _no_logprobs(model, protocol)
    if asked > most:
        raise ConfigError(f"model {model.name!r} gives at most {most} alternatives per token, not {asked}")
    _check_schema_support(model, roles)
    replayed = is_replay(model.name)  # whose replies were stopped, or not, when they were recorded
    if any(role.early_stop for role in roles) and not (replayed or (most and model.capabilities.streaming)):
        raise CapabilityMissing(f"model {model.name!r} does not stream log-probabilities: leave `early_stop` out")
    _check_sampling(model, roles)


def _check_schema_support(model: Model, roles: Sequence[RoleBinding]) -> None:
    if model.capabilities.structured_output == "no" and any(role.structured for role in roles):
        raise CapabilityMissing(
            f"model {model.name!r} does not support structured output: leave `structured: true` out of its roles"
        )


def _check_sampling(model: Model, roles: list[RoleBinding]) -> None:
    """A setting that somebody wrote down is never left out in silence; the defaults are, where a model takes none."""
    most = model.capabilities.max_temperature
    for role in roles:
        for name in ("seed", "stop", "repetition_penalty", "reasoning_effort", "extra"):
            if getattr(role, name) not in (None, (), {}) and name not in model.capabilities.settings:
                raise ConfigError(f"model {model.name!r} takes no `{name}`: leave it out of the role's settings")
        effort, efforts = role.reasoning_effort, model.capabilities.efforts
        if effort is not None and efforts and effort not in efforts:
            known = ", ".join(efforts)
            raise ConfigError(f"model {model.name!r} takes a `reasoning_effort` of {known}, not {effort!r}")
        written = [name for name in ("temperature", "top_p") if getattr(role, name) is not None]
        if most is None:
            for name in sorted(role.model_fields_set.intersection(written)):
                raise ConfigError(f"model {model.name!r} takes no `{name}`: leave it out of the role's settings")
        elif role.temperature is not None and role.temperature > most:
            raise ConfigError(f"model {model.name!r} takes a temperature of at most {most:g}, not {role.temperature:g}")


async def _check_encoder(prepared: Prepared, network: bool, trials: TrialResults) -> None:
    asked = (prepared.config.encoder, prepared.config.encoder_key_env)
    encoder = make_encoder(asked[0], PROBE_RETRIES, api_key_env=asked[1])
    try:
        if network and asked not in trials.encoders:
            await encoder.check()
            trials.encoders.add(asked)
    finally:
        await encoder.close()


async def _check_body(classifier: ResolvedClassifier) -> None:
    """Whether the encoder of a classifier's own, if it has one, can be loaded."""
    body = classifier.card.body
    if body is None:
        return
    encoder = body_encoder(classifier.folder / BODY, body.digest, PROBE_RETRIES)
    try:
        await encoder.check()
    finally:
        await encoder.close()


async def _probe_model(
    model: Model,
    binding: ModelBinding,
    roles: Sequence[tuple[str, RoleBinding]],
    prepared: Prepared,
    trials: TrialResults,
) -> ModelProfile:
    """What the trial finds; over the Responses API, where OpenAI offers the model there only."""
    try:
        return await _probe(model, binding, roles, prepared, trials)
    except OnlyOverResponses:
        other = over_responses(binding)
        if other is None:
            raise
    _log.warning("the model is used over the Responses API, the only one that offers it", model=model.name)
    again = make_model(other, seed=prepared.config.seed, answer_key=None)
    try:
        _check_declared(again, [role for _, role in roles], prepared.protocol)
        return await _probe(again, other, roles, prepared, trials)
    finally:
        await again.close()


async def _probe(
    model: Model,
    binding: ModelBinding,
    roles: Sequence[tuple[str, RoleBinding]],
    prepared: Prepared,
    trials: TrialResults,
) -> ModelProfile:
    """Try calls as the role makes them that asks for most, with the schemas of all its roles."""
    members, protocol = [member for _, member in roles], prepared.protocol
    role = max(members, key=lambda member: (member.early_stop is not None, member.top_logprobs or 0))
    trial = ProbeRequest(
        decoding=_trial_role(role, members),
        timeout_s=role.timeout_s,
        replies=_asked_replies(roles, prepared),
        insists=any(member.structured for member in members),
        needs_logprobs=role.early_stop is not None or (protocol.needs_logprobs and bool(role.top_logprobs)),
        free_logprobs=any(_asks_free_text_logprobs(family, member, protocol) for family, member in roles),
        streams=any(member.early_stop is not None for member in members),
        reasoning_tokens=max(member.reasoning_tokens for member in members),
        written=frozenset(
            name for member in members for name in member.model_fields_set if getattr(member, name) is not None
        ),
    )
    if (binding, trial) not in trials.models:
        trials.models[binding, trial] = await probe(model, trial)
    profile, given = trials.models[binding, trial]
    if not given and protocol.needs_logprobs and role.top_logprobs:
        raise _no_logprobs(model, protocol)
    if not given and role.early_stop is not None:
        raise CapabilityMissing(f"model {model.name!r} gives no log-probabilities: leave `early_stop` out")
    return profile


def _trial_role(role: RoleBinding, members: Sequence[RoleBinding]) -> Decoding:
    """The role's decoding, with what it does not say itself as the first one says it that does: all is to be tried."""
    decodings = [role.decoding(), *(member.decoding() for member in members)]
    said = {
        name: next((given for each in decodings if (given := getattr(each, name)) not in (None, ())), None)
        for name in ("temperature", "top_p", "seed", "stop", "repetition_penalty", "reasoning_effort")
    }
    return msgspec.structs.replace(decodings[0], **{name: value for name, value in said.items() if value is not None})


def _asked_replies(roles: Sequence[tuple[str, RoleBinding]], prepared: Prepared) -> tuple[ExpectedReply, ...]:
    """What the roles are asked for, with the longest list of labels; of roles whose replies are left free, nothing.

    A protocol of a user's own that does not say is taken to ask for positions.
    """
    declared, labels = _needs_of_first_cases(prepared)
    asked = [
        ExpectedReply(reply, labels, member.max_tokens, _logprobs_of(member, prepared.protocol))
        for family, member in roles
        if member.structured is not False
        for reply in declared.get(family, () if declared else (Position,))
    ]
    return tuple(dict.fromkeys(asked))


def _needs_of_first_cases(
    prepared: Prepared,
) -> tuple[Mapping[str, Sequence[type[BaseModel]]], tuple[str, ...] | None]:
    """By role family, the replies that the first cases need, and of their closed sets of labels the one that asks most
    of a schema; all that the protocol declares, and None, where a task cannot be read twice."""
    declared = prepared.protocol.replies
    if prepared.checked is None:
        return declared, None
    needed, closed = set[tuple[str, type[BaseModel]]](), list[tuple[str, ...]]()
    for each in islice(prepared.cases(), _LOOKED_AT):
        by_family = prepared.protocol.replies_for(each.case)
        needed |= {(family, reply) for family, replies in by_family.items() for reply in replies}
        closed += [each.case.labels] if each.case.labels else []
    asked = {family: [r for r in replies if (family, r) in needed] for family, replies in declared.items()}
    return asked, max(closed, key=lambda labels: (len(labels), sum(map(len, labels))), default=None)


def _logprobs_of(member: RoleBinding, protocol: DebateProtocol) -> Literal["no", "wanted", "needed"]:
    """Whether a role asks for log-probabilities, and whether its replies are of no use without."""
    if member.decoding().top_logprobs is None:
        return "no"
    written = "top_logprobs" in member.model_fields_set or member.early_stop is not None
    return "wanted" if protocol.goes_on_without_logprobs and not written else "needed"


def _asks_free_text_logprobs(family: str, member: RoleBinding, protocol: DebateProtocol) -> bool:
    """Whether a role asks for log-probabilities of replies that are left free."""
    free = member.structured is False or (bool(protocol.replies) and not protocol.replies.get(family))
    return free and member.decoding().top_logprobs is not None


def _no_logprobs(model: Model, protocol: DebateProtocol) -> CapabilityMissing:
    needed = f"model {model.name!r} gives no log-probabilities, which protocol {protocol.name!r} needs"
    return CapabilityMissing(f"{needed}: {protocol.without_logprobs}" if protocol.without_logprobs else needed)
