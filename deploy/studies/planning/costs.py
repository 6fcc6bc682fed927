"""Measured engine costs: CPU time of a call, memory of a process and of an open debate.

Measured by `tests/bench/plan_costs.py` (the seven-call debate, short prompts, replies of 100 tokens) on 2 cores (AMD
EPYC, virtual), Python 3.11.7, Ray 2.60.0, 2026-11-22, on a machine in use. Protocols that embed, compare or plot
extensively need more CPU time; set it with `--cpu-ms-per-call`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from moot.actors.debate.run_spec import Placement

MEASURED_ON = "2 virtual cores (AMD EPYC), 2026-11-22, tests/bench/plan_costs.py"

BUSY_SHARE = 0.7
"""Planned utilisation of a core, for available and for needed cores: above it, bursts queue."""

_ROUNDING = 1e-6


class EngineCosts(NamedTuple):
    """Costs of a placement, with or without log-probabilities.

    Attributes:
        cpu_ms: CPU milliseconds per call, over all of moot's processes.
        moderator_share: proportion of `cpu_ms` in moderators.
        open_kb: memory of an open debate in KiB, over all of moot's processes.
    """

    cpu_ms: float
    moderator_share: float
    open_kb: float


ENGINE: dict[tuple[Placement, bool], EngineCosts] = {
    ("actors", False): EngineCosts(cpu_ms=0.82, moderator_share=0.20, open_kb=80.0),
    ("actors", True): EngineCosts(cpu_ms=1.50, moderator_share=0.13, open_kb=82.0),
    ("packed", False): EngineCosts(cpu_ms=0.70, moderator_share=0.82, open_kb=94.0),
    ("packed", True): EngineCosts(cpu_ms=1.50, moderator_share=0.84, open_kb=220.0),
}
"""Costs by placement, and by whether log-probabilities are recorded."""

MODERATOR_MB: dict[Placement, int] = {"actors": 110, "packed": 160}
AGENT_MB = 155
"""Memory of an agent process, in placement `actors`; a packed moderator includes its agents."""

FIXED_MB = 460
"""Total memory of driver, limiter and one writer."""

RAY_MB = 370
"""Memory of Ray's own processes on each node."""


class MachineNeeds(NamedTuple):
    """Resource needs of a run.

    Attributes:
        cores: number of cores at a utilisation of `BUSY_SHARE`.
        moderators: number of moderator processes.
        memory_mb: memory of all processes in MiB, including Ray's on every node.
    """

    cores: int
    moderators: int
    memory_mb: float


def machine_needs(
    calls_per_s: float, cpu_ms: float, open_debates: float, placement: Placement, log_probabilities: bool, nodes: int
) -> MachineNeeds:
    """Resource needs for a call rate and a number of open debates.

    Args:
        calls_per_s: mean over the run.
        cpu_ms: CPU milliseconds per call.
        open_debates: maximum number of open debates.
        placement: placement of the actors.
        log_probabilities: whether they are recorded.
        nodes: number of machines.
    """
    costs = ENGINE[placement, log_probabilities]
    busy = calls_per_s * cpu_ms / 1000.0 / BUSY_SHARE
    moderators = _at_least_one(busy * costs.moderator_share)
    agents = _at_least_one(busy * (1.0 - costs.moderator_share)) if placement == "actors" else 0
    memory_mb = FIXED_MB + RAY_MB * nodes + moderators * MODERATOR_MB[placement] + agents * AGENT_MB
    return MachineNeeds(_at_least_one(busy), moderators, memory_mb + open_debates * costs.open_kb / 1024.0)


def _at_least_one(amount: float) -> int:
    return max(1, math.ceil(amount - _ROUNDING))
