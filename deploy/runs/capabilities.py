"""Model capabilities as text: those that a model declares, and a run's adaptations to it after the trial calls."""

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
from moot.protocols.plain_replies import has_plain_form
from moot.protocols.reply_ids import reply_id, reply_name

CONSTRAINED_LOGPROBS = {
    "raw": "its own, before the schema's mask",
    "masked": "taken after the schema's mask: a probability of 1 is unknown",
    "unknown": "it is not known whether they are taken after the schema's mask: a probability of 1 is unknown",
}
"""Meaning of a schema-constrained reply's log-probabilities, by `ModelProfile.held_logprobs`."""


PLAIN_TEXT = "it writes no JSON: it is asked for plain text, and a protocol that needs more is refused"


def model_adaptations(profile: ModelProfile, *, offers_schemas: bool) -> list[str]:
    """Adaptations of requests to this model, as phrases.

    >>> model_adaptations(ModelProfile(schemas="vllm", omitted=("top_p",)), offers_schemas=True)
    ['no `top_p` is sent']
    """
    phrases = [f"no `{name}` is sent" for name in profile.omitted]
    phrases += ["the system message is prepended to the user's"] if profile.folds_system else []
    phrases += ["it reasons first: its replies get additional `reasoning_tokens`"] if profile.reasons else []
    if offers_schemas:
        phrases += ["replies are not schema-constrained"] if profile.schemas == "free" else []
        phrases += [] if profile.writes_json else [PLAIN_TEXT]
        phrases += ["labels are not listed in schemas"] if not profile.listed_labels else []
        phrases += [
            f"{reply_name(each.reply)}: {schema_mode_text(each.schemas, each.listed_labels)}"
            for each in profile.exceptions
        ]
    return phrases + list(_logprob_adaptations(profile))


def _logprob_adaptations(profile: ModelProfile) -> Iterator[str]:
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
    """Role, reply type and structured-output mode of every reply type that a protocol requests.

    Args:
        profile: of the model.
        replies: reply types by role family.
    """
    for family, kinds in replies.items():
        for kind in kinds:
            schemas, listed = profile.mode_of(reply := reply_id(kind))
            plain = schemas == "free" and not profile.writes_json and has_plain_form(kind)
            yield family, reply_name(reply), "plain text" if plain else schema_mode_text(schemas, listed)


NOTES = {
    "openai/NAME": "some models give no log-probabilities: the trial call before a run detects this",
    "anthropic/NAME": "a temperature only up to Claude 4.6, later models take none; schemas from Claude 4.5 on",
    "http://HOST:PORT/v1#NAME": "these may be requested: `moot doctor --model` and the trial call before a run detect "
    "which of them the server supports, except for pictures",
}
"""Notes beside `describe_capabilities`, by form."""


def describe_capabilities(capabilities: Capabilities) -> dict[str, str]:
    """Capabilities of a model backend as text, by name.

    >>> describe_capabilities(Capabilities(max_alternatives=5, logprob_stage="before"))["log-probabilities"]
    'up to 5 alternatives, before temperature'
    """
    most, stage = capabilities.max_alternatives, capabilities.logprob_stage
    max_temperature = capabilities.max_temperature
    where = "before or after temperature unknown" if stage == "unknown" else f"{stage} temperature"
    return {
        "log-probabilities": f"up to {most:,} alternatives, {where}" if most else "no",
        "pictures": _yes(capabilities.images),
        "schemas": capabilities.structured_output,
        "streaming": _yes(capabilities.streaming),
        "repeatable": _yes(capabilities.seeds),
        "temperature": "no" if max_temperature is None else f"up to {max_temperature:g}",
    }


def in_one_line(words: dict[str, str]) -> str:
    """Result of `describe_capabilities` on one line.

    >>> in_one_line({"pictures": "yes", "streaming": "no"})
    'pictures: yes; streaming: no'
    """
    return "; ".join(f"{what}: {can}" for what, can in words.items())


def _yes(can: bool) -> str:
    return "yes" if can else "no"


def forms() -> dict[str, dict[str, str]]:
    """Declared capabilities by form of a model's name; opens no connection and no file."""
    by_form = {form: describe_capabilities(_capabilities(form)) for form in MODELS}
    by_form["replay/RUN"]["log-probabilities"] = "as recorded"
    return by_form


def _capabilities(form: str) -> Capabilities:
    """Capabilities of an example of a form; without a model where the form needs a folder or an installed package."""
    if form == "replay/RUN":
        return recorded_capabilities({})
    if form == "local/PATH":
        return LocalModel.capabilities
    if form == "small":
        return SmallModel.capabilities
    return make_model(ModelBinding(model=EXAMPLES[form]), seed=0, answer_key=None).capabilities
