"""Which of Anthropic's models still take a temperature, and the version of the API in which they do."""

from __future__ import annotations

from moot.actors.models.families import family_of_model
from moot.protocols.messages import Decoding

SAMPLING_VERSION = "2023-06-01"
"""Last `anthropic-version` with `temperature` and `top_p`; the SDK sends a later one, which answers 400 to both."""

MAX_TEMPERATURE = 1.0
"""Greatest temperature of the models that take one."""


def takes_sampling(model: str) -> bool:
    """Whether a model takes `temperature` or `top_p`: those up to Claude 4.6 do, all later ones refuse them.

    A name that is not known counts as later, so that a new model is not refused for a setting of ours.

    >>> [takes_sampling(name) for name in ("claude-haiku-4-5-20251001", "claude-opus-4-7", "claude-opus-5-5")]
    [True, False, False]
    """
    family = family_of_model("anthropic", model)
    return family is not None and family.sampling


def sampling(model: str, decoding: Decoding) -> tuple[float | None, float | None]:
    """The `temperature` and `top_p` to send; None leaves one out.

    Models that take them refuse both at once: the temperature goes before.
    """
    if not takes_sampling(model):
        return None, None
    return decoding.temperature, (decoding.top_p if decoding.temperature is None else None)
