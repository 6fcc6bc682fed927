"""Model capabilities as text: what a model declares, and what a run adapts to it after its trial calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from moot.actors.agent.backend_factory import make_model
from moot.actors.models.interface import Capabilities
from moot.actors.models.local.model import LocalModel
from moot.actors.models.model_profile import ConstraintMode, ModelProfile
from moot.actors.models.resolve import EXAMPLES, MODELS, ModelBinding
from moot.actors.models.small.model import SmallModel
from moot.actors.record.replay_model import recorded_capabilities
from moot.protocols.reply_ids import reply_id, reply_name

HELD_STAGES = {
    "raw": "its own, before the schema's mask",
    "masked": "taken after the schema's mask: a probability of 1 is unknown",
    "unknown": "it is not known whether they are taken after the schema's mask: a probability of 1 is unknown",
}
"""Meaning of a schema-constrained reply's log-probabilities, by `ModelProfile.held_logprobs`."""


def model_adaptations(profile: ModelProfile, *, offers_schemas: bool) -> list[str]:
    """Differences of requests to this model from those to most models.

    >>> model_adaptations(ModelProfile(schemas="vllm", omitted=("top_p",)), offers_schemas=True)
    ['no `top_p` is sent']
    """
    found = [f"no `{name}` is sent" for name in profile.omitted]
    found += ["the system message is prepended to the user's"] if profile.folds_system else []
    found += ["it reasons first: its replies get `reasoning_tokens` on top"] if profile.reasons else []
    if offers_schemas:
        found += ["replies are not schema-constrained"] if profile.schemas == "free" else []
        found += ["labels are not listed in schemas"] if not profile.listed_labels else []
        found += [
            f"{reply_name(each.reply)}: {schema_mode_text(each.schemas, each.listed_labels)}"
            for each in profile.exceptions
        ]
    return found + list(_of_logprobs(profile))


def _of_logprobs(profile: ModelProfile) -> Iterator[str]:
    if profile.alternatives == 0:
        yield "no log-probabilities are requested"
        return
    if profile.alternatives is not None:
        yield f"at most {profile.alternatives} alternatives per token are requested"
    if not profile.logprobs_when_held:
        yield "a schema-constrained reply has no log-probabilities"


def schema_mode_text(schemas: ConstraintMode, listed_labels: bool) -> str:
    """Structured-output mode of a reply type, as text.

    >>> schema_mode_text("vllm", False)
    'schema (vllm), labels not listed'
    """
    if schemas == "free":
        return "free"
    return f"schema ({schemas})" if listed_labels else f"schema ({schemas}), labels not listed"


def schema_mode_rows(
    profile: ModelProfile, replies: Mapping[str, Sequence[type[BaseModel]]]
) -> Iterator[tuple[str, str, str]]:
    """Role, reply type and structured-output mode of every reply type that a protocol requests."""
    for family, kinds in replies.items():
        for reply in map(reply_id, kinds):
            yield family, reply_name(reply), schema_mode_text(*profile.mode_of(reply))


NOTES = {
    "openai/NAME": "some models give no log-probabilities: the trial call before a run finds out",
    "anthropic/NAME": "a temperature only up to Claude 4.6, later models take none; schemas from Claude 4.5 on",
    "http://HOST:PORT/v1#NAME": "this is what may be requested: `moot doctor --model` and the trial call before a run "
    "show what the server supports, pictures aside",
}
"""Notes beside `describe_capabilities`, by form."""


def describe_capabilities(capabilities: Capabilities) -> dict[str, str]:
    """A backend's capabilities as text.

    >>> describe_capabilities(Capabilities(max_alternatives=5, logprob_stage="before"))["log-probabilities"]
    'up to 5 alternatives, before temperature'
    """
    most, stage, hottest = capabilities.max_alternatives, capabilities.logprob_stage, capabilities.max_temperature
    where = "before or after temperature unknown" if stage == "unknown" else f"{stage} temperature"
    return {
        "log-probabilities": f"up to {most:,} alternatives, {where}" if most else "no",
        "pictures": _yes(capabilities.images),
        "schemas": capabilities.structured_output,
        "streaming": _yes(capabilities.streaming),
        "repeatable": _yes(capabilities.seeds),
        "temperature": "no" if hottest is None else f"up to {hottest:g}",
    }


def in_one_line(words: dict[str, str]) -> str:
    """The result of `describe_capabilities` on one line.

    >>> in_one_line({"pictures": "yes", "streaming": "no"})
    'pictures: yes; streaming: no'
    """
    return "; ".join(f"{what}: {can}" for what, can in words.items())


def _yes(can: bool) -> str:
    return "yes" if can else "no"


def forms() -> dict[str, dict[str, str]]:
    """Declared capabilities by form of a model's name; opens no connection and no file."""
    found = {form: describe_capabilities(_capabilities(form)) for form in MODELS}
    found["replay/RUN"]["log-probabilities"] = "as far as they are on record"
    return found


def _capabilities(form: str) -> Capabilities:
    """Capabilities of an example; a form with a folder has none, and `small` may not be installed."""
    if form == "replay/RUN":
        return recorded_capabilities({})
    if form == "local/PATH":
        return LocalModel.capabilities
    if form == "small":
        return SmallModel.capabilities
    return make_model(ModelBinding(model=EXAMPLES[form]), seed=0, answer_key=None).capabilities
