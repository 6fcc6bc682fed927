"""What a planned run may use: rates, calls under way, debates open, processors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Constraint = Literal["rpm", "tpm", "concurrency", "max_open", "cpu", "latency"]
"""What can hold a run back; `latency` is what is left when nothing else does."""

WORDS: dict[Constraint, str] = {
    "rpm": "requests per minute",
    "tpm": "tokens per minute",
    "concurrency": "calls under way",
    "max_open": "debates open at once",
    "cpu": "processors",
    "latency": "latency alone",
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """The bounds of a run. `rpm`, `tpm` and `concurrency` are of each model, as the limiter has them.

    Attributes:
        rpm, tpm: requests and tokens per minute; None for no bound.
        concurrency: calls under way; None adapts it, as the limiter does.
        max_open: most debates open at once.
        cores: processors that the run's processes may keep busy; None for as many as it takes.
        cpu_s: processor seconds of a call.
        adapts: whether a concurrency of None starts low and grows; without it there is no bound at all.
        shrunk: every bound, the number of cases apart, is divided by this: a run of a hundredth of the cases under a
            hundredth of the bounds takes as long. At least 1.
    """

    rpm: int | None = None
    tpm: int | None = None
    concurrency: int | None = None
    max_open: int = 200
    cores: float | None = None
    cpu_s: float = 0.0
    adapts: bool = True
    shrunk: float = 1.0

    def without(self, constraint: Constraint, cases: int) -> Scenario:
        """The same without one of its bounds.

        Args:
            constraint: not `latency`, which is no bound.
            cases: how many there are, which is the most that can be open.
        """
        if constraint == "concurrency":
            return replace(self, concurrency=None, adapts=False)
        if constraint == "max_open":
            return replace(self, max_open=max(cases, self.max_open))
        if constraint == "cpu":
            return replace(self, cores=None)
        return replace(self, rpm=None) if constraint == "rpm" else replace(self, tpm=None)
