"""Checks before a run: keys, reachable servers, capabilities of models, and a trial embedding."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from pydantic import ValidationError

from moot.actors.agent.backend_factory import make_model
from moot.actors.agent.roles import RoleBinding
from moot.actors.classifiers.card import BODY
from moot.actors.classifiers.classifier import ResolvedClassifier, body_encoder
from moot.actors.debate.context_factory import model_binding
from moot.actors.encoders.resolve import make_encoder
from moot.actors.models.interface import Model
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.probe_calls import PROBE_RETRIES, declared_profile
from moot.actors.models.resolve import ModelBinding, is_embedded, is_replay
from moot.actors.models.small.spec import is_small
from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.deploy.runs.bindings import roles_shown_pictures
from moot.deploy.runs.capability_checks import check_declared, check_schema_support
from moot.deploy.runs.dry_run import check_own_templates
from moot.deploy.runs.model_trials import ModelTrial, TrialResults
from moot.deploy.runs.plain_forms import check_plain_forms
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.prior_runs import reusable_replies
from moot.protocols.errors import CapabilityMissing, RecordError
from moot.protocols.validation_messages import expected_value


async def check_models(prepared: Prepared, *, network: bool = True, trials: TrialResults | None = None) -> Prepared:
    """Check every distinct model of the run and its encoder by trial calls, each made once.

    Args:
        prepared: the run.
        network: False only constructs the models, so that an invalid setting is detected, counts the replies to reuse,
            and renders a protocol's own templates on the first case.
        trials: results of related runs; new ones are added.

    Returns:
        The run with the profiles of its models: of a resumed run the recorded ones.

    Raises:
        ConfigError: a setting of a model or of the encoder is malformed, a model does not support a role's setting, a
            template lacks a slot, or the run whose replies are reused cannot be read.
        MissingKey: an API key is not set; names the environment variable.
        ModelUnavailable: a server does not answer or refuses access.
        CapabilityMissing: a model gives no log-probabilities though the protocol needs them, has no constrained
            decoding though a role requires it, takes no pictures though cases have some, or writes no JSON though a
            reply cannot be given in plain text; or a package is missing.
    """
    roles_by_model: dict[ModelBinding, list[tuple[str, RoleBinding]]] = {}
    for family, members in prepared.bindings.items():
        for member in members:
            roles_by_model.setdefault(model_binding(member), []).append((family, member))
    if not network:
        await check_own_templates(prepared)
        if prepared.reuse is not None:
            await asyncio.to_thread(reusable_replies, prepared.reuse)
    shown_pictures = _models_shown_pictures(prepared)
    profiles: dict[_Endpoint, ModelProfile | None] = {}
    known_profiles = await asyncio.to_thread(_known_profiles, prepared) if network else None
    trials = TrialResults() if trials is None else trials
    for binding, roles in roles_by_model.items():
        model = make_model(binding, seed=prepared.config.seed, answer_key=None)
        try:
            if binding in shown_pictures and not model.capabilities.images:
                raise CapabilityMissing(f"model {model.name!r} takes no pictures, but the cases have some")
            check_declared(model, [role for _, role in roles], prepared.protocol)
            if network:
                await model.check()
                check_schema_support(model, [role for _, role in roles])
                if known_profiles is not None:
                    profiles[_endpoint(binding)] = known_profiles.get(_endpoint(binding))
                elif (found := await _found_profile(model, binding, ModelTrial(prepared, roles, trials))) is not None:
                    profiles[_endpoint(binding)] = found
        finally:
            await model.close()
    await _check_encoder(prepared, network, trials)
    if prepared.classifier is not None and network:
        await _check_body(prepared.classifier)
    checked = _with_profiles(prepared, profiles) if profiles else prepared
    check_plain_forms(checked)
    return checked


async def _found_profile(model: Model, binding: ModelBinding, trial: ModelTrial) -> ModelProfile | None:
    """Profile from trial calls, or as declared by an embedded model; None for one that declares no schemas."""
    if not is_embedded(binding.model):
        return await trial.profile(model, binding)
    if model.capabilities.structured_output == "no":
        return None
    declared = declared_profile(model, model.capabilities.dialect)
    # the weights of another embedded model are not in this process
    return await trial.with_json_trial(model, binding, declared) if is_small(binding.model) else declared


_Endpoint = tuple[str, str | None]
"""Model and server. The source of the API key is no part of it, because it may change between sessions."""


def _endpoint(binding: ModelBinding | RoleBinding) -> _Endpoint:
    return binding.model, binding.base_url


def _known_profiles(prepared: Prepared) -> Mapping[_Endpoint, ModelProfile | None] | None:
    """Profiles of the run's models, from the record or earlier trial calls; None before the trial calls."""
    recorded = recorded_profiles(prepared.record)
    if recorded is None and prepared.trials_done:
        return {_endpoint(member): member.profile for members in prepared.bindings.values() for member in members}
    return recorded


def recorded_profiles(run: RunFolder) -> dict[_Endpoint, ModelProfile | None] | None:
    """Recorded profiles of a run's models, by which a resumed run calls them as before; None without a run.

    An older record has no profiles: each is None, and the model is called as that version called it.

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
    return {_endpoint(binding): binding.profile for binding in bindings}


def _with_profiles(prepared: Prepared, profiles: Mapping[_Endpoint, ModelProfile | None]) -> Prepared:
    bindings = {
        family: [_with_profile(member, profiles) for member in members] for family, members in prepared.bindings.items()
    }
    return replace(prepared, bindings=bindings, trials_done=True)


def _with_profile(member: RoleBinding, profiles: Mapping[_Endpoint, ModelProfile | None]) -> RoleBinding:
    """The member with its model's profile; a replayed member keeps its recorded one."""
    if is_replay(member.model):
        return member
    return member.model_copy(update={"profile": profiles.get(_endpoint(member))})


def _models_shown_pictures(prepared: Prepared) -> set[ModelBinding]:
    """Models that receive the cases' pictures; none if the cases cannot be read before the run."""
    if prepared.checked is None or not prepared.checked.pictured:
        return set()
    if not any(labelled.case.images for labelled in prepared.cases()):
        return set()
    return {
        model_binding(member)
        for family in roles_shown_pictures(prepared.protocol)
        for member in prepared.bindings[family]
    }


async def _check_encoder(prepared: Prepared, network: bool, trials: TrialResults) -> None:
    name, key_env = prepared.config.encoder, prepared.config.encoder_key_env
    encoder = make_encoder(name, PROBE_RETRIES, api_key_env=key_env)
    try:
        if network and (name, key_env) not in trials.encoders:
            await encoder.check()
            trials.encoders.add((name, key_env))
    finally:
        await encoder.close()


async def _check_body(classifier: ResolvedClassifier) -> None:
    """Check that the classifier's own encoder, if it has one, can be loaded."""
    body = classifier.card.body
    if body is None:
        return
    encoder = body_encoder(classifier.folder / BODY, body.digest, PROBE_RETRIES)
    try:
        await encoder.check()
    finally:
        await encoder.close()
