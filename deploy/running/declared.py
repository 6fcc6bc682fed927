"""What each form of a model's name declares that it can do, in words."""

from __future__ import annotations

from moot.actors.models.interface import Capabilities
from moot.actors.models.local.model import LocalModel
from moot.actors.models.replay import recorded_capabilities
from moot.actors.models.resolve import EXAMPLES, MODELS, ModelBinding, make_model
from moot.actors.models.small.model import SmallModel

NOTES = {
    "openai/NAME": "some models give no log-probabilities: the trial call before a run finds out",
    "anthropic/NAME": "a temperature only up to Claude 4.6, later models take none; schemas from Claude 4.5 on",
    "http://HOST:PORT/v1#NAME": "this is what may be asked for: `moot doctor --model` and the trial call before a run "
    "show what the server can do, pictures aside",
}
"""By form, what the words of `declared` leave open."""


def declared(capabilities: Capabilities) -> dict[str, str]:
    """A backend's capabilities in words.

    >>> declared(Capabilities(max_alternatives=5, logprob_stage="before"))["log-probabilities"]
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
    """What `declared` gives, for one line.

    >>> in_one_line({"pictures": "yes", "streaming": "no"})
    'pictures: yes; streaming: no'
    """
    return "; ".join(f"{what}: {can}" for what, can in words.items())


def _yes(can: bool) -> str:
    return "yes" if can else "no"


def forms() -> dict[str, dict[str, str]]:
    """By form of a model's name, what it declares; opens no connection and no file."""
    found = {form: declared(_capabilities(form)) for form in MODELS}
    found["replay/RUN"]["log-probabilities"] = "as far as they are on record"
    return found


def _capabilities(form: str) -> Capabilities:
    """Those of an example; a form that names a folder has none, and `small` may not be installed."""
    if form == "replay/RUN":
        return recorded_capabilities({})
    if form == "local/PATH":
        return LocalModel.capabilities
    if form == "small":
        return SmallModel.capabilities
    return make_model(ModelBinding(model=EXAMPLES[form]), seed=0, answer_key=None).capabilities
