"""Model profile: how a model constrains replies, and which settings it does not support; detected by trial calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, model_validator

from moot.actors.models.families import Api
from moot.actors.models.schema_dialects import DialectName
from moot.protocols.messages import Decoding

ConstraintMode = DialectName | Literal["free"]
"""Dialect in which a reply's schema is sent; `free` for an unconstrained reply."""

Omitted = Literal[
    "temperature", "top_p", "seed", "stop", "repetition_penalty", "reasoning_effort", "stream_options", "store"
]
"""Settings that can be omitted from a request without changing the question."""

_LEFT_OUT: Mapping[Omitted, tuple[str, object]] = {
    "stop": ("stop", ()),
    "stream_options": ("stream_usage", False),
    "store": ("forbids_storing", False),
}
"""By setting, the field of `Decoding` that omits it, and its value; for others, None in the field of that name."""


class ReplyOverride(BaseModel):
    """Kind of reply that is constrained differently from the others of its model.

    Attributes:
        reply: its type, as `module:Class`.
        schemas, listed_labels: as in `ModelProfile`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    reply: str
    schemas: ConstraintMode
    listed_labels: bool = True


class ModelProfile(BaseModel):
    """Profile of one model, detected by a run's trial calls; stored in run.yaml and reused when the run resumes.

    Attributes:
        schemas: dialect in which its replies' schemas are sent; `free` where it supports none.
        listed_labels: whether a case's labels are sent as an `enum`.
        exceptions: kinds of replies that it constrains differently, or not at all.
        server: kind of server; `portable` when unknown.
        reasons: whether it is known or was detected to generate hidden reasoning: it may then use more tokens.
        folds_system: whether it supports no system message, which is then prepended to the first user message.
        bounds_completion: whether it supports `max_completion_tokens` and not `max_tokens`.
        held_logprobs: whether log-probabilities of a constrained reply are taken before its schema's mask (`raw`) or
            after it (`masked`); `unknown` after an inconclusive trial; None in an older record that has neither.
        alternatives: most alternatives per token that it returns; 0 without log-probabilities; None if it returns as
            many as were requested.
        logprobs_when_held: whether it supports a schema and log-probabilities in one call.
        api: OpenAI's API in use.
        omitted: settings that the user did not set and that it does not support: they are not sent.
        untried: servers of a pool that did not answer the trial calls.
        writes_json: whether it writes a JSON object if a prompt asks for one and no schema constrains it; False only
            after trial calls.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schemas: ConstraintMode
    listed_labels: bool = True
    exceptions: tuple[ReplyOverride, ...] = ()
    server: DialectName = "portable"
    reasons: bool = False
    folds_system: bool = False
    bounds_completion: bool = False
    held_logprobs: Literal["raw", "masked", "unknown"] | None = "unknown"
    alternatives: int | None = None
    logprobs_when_held: bool = True
    api: Api = "chat"
    omitted: tuple[Omitted, ...] = ()
    untried: tuple[str, ...] = ()
    writes_json: bool = True

    @model_validator(mode="before")
    @classmethod
    def _of_an_older_record(cls, data: Any) -> Any:
        """Migrates records of two older formats, which only stated whether log-probabilities were masked."""
        if not isinstance(data, Mapping) or "masked_logprobs" not in data:
            return data
        masked = data["masked_logprobs"]
        return {key: value for key, value in data.items() if key != "masked_logprobs"} | {
            "held_logprobs": "masked" if masked else None
        }

    def mode_of(self, reply: str) -> tuple[ConstraintMode, bool]:
        """Constraint mode of a kind of reply: its dialect, and whether labels are listed."""
        for each in self.exceptions:
            if each.reply == reply:
                return each.schemas, each.listed_labels
        return self.schemas, self.listed_labels

    def adapted(self, decoding: Decoding) -> Decoding:
        """Decoding without the settings that the model does not support."""
        changes: dict[str, object] = {}
        for name in self.omitted:
            field, value = _LEFT_OUT.get(name, (name, None))
            changes[field] = value
        if self.bounds_completion:
            changes["bounds_completion"] = True
        if self.alternatives is not None and decoding.top_logprobs is not None:
            changes["top_logprobs"] = min(decoding.top_logprobs, self.alternatives) if self.alternatives else None
        return msgspec.structs.replace(decoding, **changes) if changes else decoding

    def beside_schema(self, decoding: Decoding) -> Decoding:
        """Decoding of a reply that is constrained to a schema."""
        return decoding if self.logprobs_when_held else msgspec.structs.replace(decoding, top_logprobs=None)
