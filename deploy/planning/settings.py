"""What can be said of a planned run."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from moot.actors.spec import Placement

_Count = Annotated[int, Field(ge=1)]


class PlanSettings(BaseModel):
    """The bounds of a planned run.

    Attributes:
        cases: how many.
        limit_rpm, limit_tpm: requests and tokens per minute of each model; None for no bound.
        concurrency: calls under way at each model; None adapts it, as a run does.
        max_open: most debates open at once; None for as many as in the pilot.
        nodes: machines; None for as many cores as it takes.
        cores_per_node: of each; None for as many as this machine has.
        placement: of the planned run; None for the pilot's.
        cpu_ms_per_call: processor time of a call; None for what was measured of the engine.
        seed: of all draws.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cases: Annotated[int, Field(ge=1, le=1_000_000_000)]
    limit_rpm: _Count | None = None
    limit_tpm: _Count | None = None
    concurrency: _Count | None = None
    max_open: _Count | None = None
    nodes: _Count | None = None
    cores_per_node: _Count | None = None
    placement: Placement | None = None
    cpu_ms_per_call: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
