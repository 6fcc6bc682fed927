"""Limit settings: rates and concurrency of each endpoint, and the budget of a run."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

WINDOW_S = 60.0
"""Length in seconds of a rate window, wherever it starts."""

PERMIT_TTL_S = 1.0
"""Lifetime of a rate permit in seconds, counted by its holder from before the request."""

_Count = Annotated[int, Field(ge=1)]


class EndpointLimits(BaseModel):
    """Bounds on one model of one server, over all processes of a run.

    Attributes:
        requests_per_min: requests in any 60 s; None for no bound.
        tokens_per_min: prompt and completion tokens in any 60 s; None for no bound.
        concurrency: requests in flight at once; None adapts it to what the server takes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests_per_min: _Count | None = None
    tokens_per_min: _Count | None = None
    concurrency: _Count | None = None


class Budget(BaseModel):
    """Budget after which a run stops, over all its sessions.

    Attributes:
        max_cost_usd: money; None for no bound.
        max_tokens: prompt and completion tokens; None for no bound.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
