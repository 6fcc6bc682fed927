"""What a trial before a run is to find out, and how it ends badly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from moot.actors.models.interface import Model
from moot.actors.models.model_profile import HeldAs, ModelProfile
from moot.actors.models.retry import RetryPolicy
from moot.protocols.errors import ModelUnavailable
from moot.protocols.messages import Decoding

PROBE_RETRIES = RetryPolicy(max_attempts=4, total_s=20.0, cap_s=2.0, retry_after_cap_s=5.0)
"""How a call before a run is repeated: the user waits for it."""

STEP_KEY = "moot/probe"


@dataclass(frozen=True, slots=True)
class AskedReply:
    """A reply that a run will ask for, held to its schema.

    Attributes:
        model: its type.
        labels: those of a case; None for an open set.
        max_tokens: its bound.
        logprobs: whether its log-probabilities are asked for, and whether it is of no use without them.
    """

    model: type[BaseModel]
    labels: tuple[str, ...] | None
    max_tokens: int
    logprobs: Literal["no", "wanted", "needed"] = "wanted"


@dataclass(frozen=True, slots=True)
class Trial:
    """What a run will ask of one model.

    Attributes:
        decoding: of the role that asks for most, so that a setting which the server does not take is found.
        timeout_s: the deadline of an ask of the run.
        replies: what is to be held to a schema; empty when nothing is.
        insists: whether a role says `structured: true`, so that a model that holds no replies is refused.
        needs_logprobs: whether the run cannot do without log-probabilities.
        free_logprobs: whether those of a reply are asked for that is left free.
        streams: whether replies are read while they are written.
        reasoning_tokens: what a model that thinks first may write beside its reply.
        written: the settings that the user wrote down: they are never left out.
    """

    decoding: Decoding
    timeout_s: float
    replies: Sequence[AskedReply] = ()
    insists: bool = False
    needs_logprobs: bool = False
    free_logprobs: bool = False
    streams: bool = False
    reasoning_tokens: int = 0
    written: frozenset[str] = frozenset()


class OnlyOverResponses(ModelUnavailable):
    """The service offers the model over its Responses API only, and was asked over another."""


class SchemaRefused(Exception):
    """The model does not hold a reply as it was asked to; the message says why."""


class LogprobsRefused(Exception):
    """The server refused a call for its log-probabilities; the message says how."""


def declared_profile(model: Model, schemas: HeldAs) -> ModelProfile:
    """What the backend declares of itself, for a model that is not tried or not tried yet."""
    can = model.capabilities
    known = ModelProfile(schemas=schemas, server=can.dialect, reasons=can.reasons, api=can.api)
    return known if can.max_temperature is not None else known.model_copy(update={"omitted": ("temperature", "top_p")})
