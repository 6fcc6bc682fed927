"""Factory of model backends from bindings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from moot.actors.models.families import family_of_model
from moot.actors.models.interface import Model
from moot.actors.models.resolve import ModelBinding, ModelSpec, check_base_url
from moot.actors.telemetry.redaction import redact
from moot.protocols.errors import ConfigError

if TYPE_CHECKING:
    from moot.actors.simulated.answer_key import AnswerKey


def _anthropic_base_url(url: str) -> str:
    checked = check_base_url(url)
    if re.search(r"/v1(/messages)?$", checked):
        raise ConfigError(f"{url!r} should end before /v1, which Anthropic's client adds itself")
    return checked


def make_model(binding: ModelBinding, *, seed: int, answer_key: AnswerKey | None, load: bool = False) -> Model:
    """Builds the backend that `binding` names; opens no connection.

    Args:
        binding: the role's model, and the environment variable of its key.
        seed: the run's seed, for draws in this process.
        answer_key: the gold labels, for `simulated` only; None leaves it at chance.
        load: whether to load weights now; else the first call loads them.

    Raises:
        ConfigError: the name or a setting is malformed, or a folder contains no model.
    """
    spec = ModelSpec.parse(binding.model)
    if binding.base_url is not None and spec.kind not in ("openai", "anthropic"):
        raise ConfigError(
            f"`base_url` goes with openai/NAME and anthropic/NAME only, not with {redact(binding.model)!r}"
        )
    if spec.kind == "simulated":
        return _simulated(spec, seed, answer_key)
    if spec.kind == "replay":
        from moot.actors.record.replay_model import ReplayModel

        return ReplayModel(Path(spec.model).expanduser())
    if spec.kind == "local":
        return _local(spec, seed, load)
    if spec.kind == "small":
        from moot.actors.models.small.model import SmallModel

        return SmallModel(spec.name, seed=seed)
    if spec.kind == "url":
        if spec.more_urls:
            from moot.actors.models.server_pool import ServerPool

            base_urls = (spec.base_url, *spec.more_urls)
            return ServerPool(base_urls, spec.model, api_key_env=binding.api_key_env, untried=binding.untried)
        from moot.actors.models.compatible import CompatibleModel

        return CompatibleModel(spec.base_url, spec.model, api_key_env=binding.api_key_env)
    return _openai(spec, binding) if spec.kind == "openai" else _anthropic(spec, binding)


def _openai(spec: ModelSpec, binding: ModelBinding) -> Model:
    base_url = check_base_url(binding.base_url) if binding.base_url is not None else None
    from moot.actors.models.openai_sdk import DEFAULT_KEY_ENV, OpenAIModel, ResponsesModel

    family = family_of_model("openai", spec.model)
    api = binding.api or (family.api if family is not None else "chat")
    backend = ResponsesModel if api == "responses" else OpenAIModel
    return backend(spec.model, api_key_env=binding.api_key_env or DEFAULT_KEY_ENV, base_url=base_url)


def _anthropic(spec: ModelSpec, binding: ModelBinding) -> Model:
    base_url = _anthropic_base_url(binding.base_url) if binding.base_url is not None else None
    from moot.actors.models.anthropic_sdk import DEFAULT_KEY_ENV, AnthropicModel

    return AnthropicModel(spec.model, api_key_env=binding.api_key_env or DEFAULT_KEY_ENV, base_url=base_url)


def _local(spec: ModelSpec, seed: int, load: bool) -> Model:
    from moot.actors.models.local.model import LocalModel

    model = LocalModel(spec.model, seed=seed)
    if load:
        model.load()
    return model


def _simulated(spec: ModelSpec, seed: int, answer_key: AnswerKey | None) -> Model:
    from moot.actors.simulated.model import SimulatedModel
    from moot.actors.simulated.settings import SimulatedSettings

    return SimulatedModel(SimulatedSettings.from_query(spec.name), seed, answer_key, spec.name)
