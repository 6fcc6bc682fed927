"""What was found of a model before a run: how its replies are held, and which settings it does not take."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from moot.actors.models.families import Api
from moot.actors.models.schema_dialects import DialectName


class ModelProfile(BaseModel):
    """What the trial calls of a run found of one model; kept in run.yaml and used again when the run is resumed.

    Attributes:
        schemas: the dialect in which its replies' schemas are sent; `free` where it holds none.
        listed_labels: whether a case's labels are sent as an `enum`.
        server: what kind of server it is; `portable` where it does not say.
        reasons: whether it is known or was found to think before it replies: it may then write more tokens.
        folds_system: whether it takes no system message, which is then put before the first one of the user.
        bounds_completion: whether it takes `max_completion_tokens` and not `max_tokens`.
        masked_logprobs: whether log-probabilities of a reply that is held are taken after its schema's mask.
        api: over which of OpenAI's APIs it is asked.
        omitted: settings that the user did not write and that it does not take: they are not sent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schemas: DialectName | Literal["free"]
    listed_labels: bool = True
    server: DialectName = "portable"
    reasons: bool = False
    folds_system: bool = False
    bounds_completion: bool = False
    masked_logprobs: bool = False
    api: Api = "chat"
    omitted: tuple[Literal["temperature", "top_p"], ...] = ()
