"""What a run does differently for a model, by what its trial calls found, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from moot.actors.models.model_profile import HeldAs, ModelProfile
from moot.protocols.replies import reply_name, reply_path

HELD_STAGES = {
    "raw": "its own, before the schema's mask",
    "masked": "taken after the schema's mask: a probability of 1 is unknown",
    "unknown": "it is not known whether they are taken after the schema's mask: a probability of 1 is unknown",
}
"""By `ModelProfile.held_logprobs`, what log-probabilities of a held reply are."""


def adaptations(profile: ModelProfile, *, offers_schemas: bool) -> list[str]:
    """What is sent otherwise than to most models.

    >>> adaptations(ModelProfile(schemas="vllm", omitted=("top_p",)), offers_schemas=True)
    ['no `top_p` is sent']
    """
    said = [f"no `{name}` is sent" for name in profile.omitted]
    said += ["the system message is put before the user's"] if profile.folds_system else []
    said += ["it thinks first: its replies get `reasoning_tokens` on top"] if profile.reasons else []
    if offers_schemas:
        said += ["replies are not held to a schema"] if profile.schemas == "free" else []
        said += ["labels are not listed in schemas"] if not profile.listed_labels else []
        said += [
            f"{reply_name(each.reply)}: {held_words(each.schemas, each.listed_labels)}" for each in profile.exceptions
        ]
    return said + list(_of_logprobs(profile))


def _of_logprobs(profile: ModelProfile) -> Iterator[str]:
    if profile.alternatives == 0:
        yield "no log-probabilities are asked for"
        return
    if profile.alternatives is not None:
        yield f"at most {profile.alternatives} alternatives per token are asked for"
    if not profile.logprobs_when_held:
        yield "a reply that is held to a schema comes without log-probabilities"


def held_words(schemas: HeldAs, listed_labels: bool) -> str:
    """How a kind of reply is held.

    >>> held_words("vllm", False)
    'held (vllm), labels not listed'
    """
    if schemas == "free":
        return "free"
    return f"held ({schemas})" if listed_labels else f"held ({schemas}), labels not listed"


def held_rows(
    profile: ModelProfile, replies: Mapping[str, Sequence[type[BaseModel]]]
) -> Iterator[tuple[str, str, str]]:
    """Role, kind of reply, and how it is held, of the types that a protocol asks for by role family."""
    for family, kinds in replies.items():
        for reply in map(reply_path, kinds):
            yield family, reply_name(reply), held_words(*profile.way(reply))
