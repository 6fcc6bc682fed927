"""Settings of a plan, and the bounds of a planned run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from moot.actors.debate.run_spec import Placement

_Count = Annotated[int, Field(ge=1)]

Constraint = Literal["rpm", "tpm", "concurrency", "max_open", "cpu", "latency"]
"""Possible bottlenecks of a run; `latency` is that of a run without bounds."""

WORDS: dict[Constraint, str] = {
    "rpm": "requests per minute",
    "tpm": "tokens per minute",
    "concurrency": "concurrent calls",
    "max_open": "debates open at once",
    "cpu": "processors",
    "latency": "latency alone",
}


class PlanSettings(BaseModel):
    """Bounds of a planned run.

    Attributes:
        cases: number of cases.
        limit_rpm, limit_tpm: requests and tokens per minute of each model; None for no bound.
        concurrency: concurrent calls per model; None adapts it, as in a run.
        max_open: maximum number of open debates; None for that of the pilot.
        nodes: number of machines; None for as many cores as needed.
        cores_per_node: cores per machine; None for the number of this machine.
        placement: planned placement; None for that of the pilot.
        cpu_ms_per_call: CPU milliseconds per call; None for the measured cost of the engine.
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
    """Bounds of a run; None is no bound.

    Attributes:
        rpm, tpm, concurrency: requests and tokens per minute, and concurrent calls, of each model.
        max_open: maximum number of open debates.
        cores: CPU cores for the processes of the run.
        cpu_s: CPU seconds per call.
    """

    rpm: float | None = None
    tpm: float | None = None
    concurrency: float | None = None
    max_open: float = 200
    cores: float | None = None
    cpu_s: float = 0.0

    def without(self, constraint: Constraint) -> Scenario:
        """Copy without one of the bounds; an equal copy for `latency`, which is not a bound."""
        changes: dict[Constraint, Scenario] = {
            "rpm": replace(self, rpm=None),
            "tpm": replace(self, tpm=None),
            "concurrency": replace(self, concurrency=None),
            "max_open": replace(self, max_open=float("inf")),
            "cpu": replace(self, cores=None),
        }
        return changes.get(constraint, self)
