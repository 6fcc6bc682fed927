"""Settings of a plan, and the bounds of a planned run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from moot.actors.debate.run_spec import Placement

_Count = Annotated[int, Field(ge=1)]

Constraint = Literal["rpm", "tpm", "concurrency", "max_open", "cpu", "latency"]
"""Possible bottlenecks of a run; `latency` is the one without any bound."""

WORDS: dict[Constraint, str] = {
    "rpm": "requests per minute",
    "tpm": "tokens per minute",
    "concurrency": "concurrent calls",
    "max_open": "debates open at once",
    "cpu": "processors",
    "latency": "latency alone",
}


class PlanSettings(BaseModel):
    """The bounds of a planned run.

    Attributes:
        cases: number of cases.
        limit_rpm, limit_tpm: requests and tokens per minute of each model; None for no bound.
        concurrency: concurrent calls at each model; None adapts it, as a run does.
        max_open: maximum concurrent debates; None for the pilot's.
        nodes: number of machines; None for as many cores as needed.
        cores_per_node: cores per machine; None for as many as this machine has.
        placement: of the planned run; None for the pilot's.
        cpu_ms_per_call: CPU time of a call; None for the engine's measured one.
        seed: random seed.
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


@dataclass(frozen=True, slots=True)
class Scenario:
    """The bounds of a run; None is no bound.

    Attributes:
        rpm, tpm, concurrency: requests and tokens per minute, and concurrent calls, of each model.
        max_open: maximum concurrent debates.
        cores: CPU cores for the run's processes.
        cpu_s: CPU seconds of a call.
    """

    rpm: float | None = None
    tpm: float | None = None
    concurrency: float | None = None
    max_open: float = 200
    cores: float | None = None
    cpu_s: float = 0.0

    def without(self, constraint: Constraint) -> Scenario:
        """Copy without one of the bounds; `latency` is not a bound."""
        changes: dict[Constraint, Scenario] = {
            "rpm": replace(self, rpm=None),
            "tpm": replace(self, tpm=None),
            "concurrency": replace(self, concurrency=None),
            "max_open": replace(self, max_open=float("inf")),
            "cpu": replace(self, cores=None),
        }
        return changes.get(constraint, self)
