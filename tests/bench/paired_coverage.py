"""Coverage, false positives and contradictions of the paired test and its interval, by simulation.

`python tests/bench/paired_coverage.py` prints a table; the default tests check a part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moot.metrics.paired_difference import paired_difference

SIZES = (10, 20, 72, 300)
"""Numbers of cases."""


@dataclass(frozen=True)
class Design:
    """Design of a simulated comparison.

    Attributes:
        n: number of cases.
        discordant: probability that exactly one system is right.
        difference: true difference of the accuracies.
        size: number of cases per group.
        effect: probability that all cases of a group have one outcome.
    """

    n: int
    discordant: float
    difference: float = 0.0
    size: int = 1
    effect: float = 0.0


@dataclass(frozen=True)
class Rates:
    """Share of the data sets: interval with the true difference, p below 0.05, and one that contradicts the other."""

    coverage: float
    positives: float
    contradictions: float


def simulated(design: Design, sets: int, seed: int = 0) -> Rates:
    """Rates over `sets` simulated data sets."""
    random = np.random.default_rng(seed)
    groups = np.arange(design.n) // design.size
    only_first = (design.discordant + design.difference) / 2
    counts = np.zeros(3)
    for _ in range(sets):
        drawn, shared = random.random(design.n), random.random((2, groups[-1] + 1))
        drawn = np.where(shared[0][groups] < design.effect, shared[1][groups], drawn)
        first, second = drawn < only_first, (only_first <= drawn) & (drawn < design.discordant)
        found = paired_difference(first.tolist(), second.tolist(), groups.tolist() if design.size > 1 else None)
        is_positive, excludes = found.p_value < 0.05, not found.low <= 0.0 <= found.high
        counts += found.low <= design.difference <= found.high, is_positive, is_positive != excludes
    return Rates(*(counts / sets).tolist())


def designs() -> list[Design]:
    """Designs of the table: with and without an effect of groups, under the null hypothesis and beside it."""
    grouped = [(1, 0.0), (3, 0.0), (3, 0.8), (3, 1.0)]
    truths = [(0.2, 0.0), (0.5, 0.0), (0.5, 0.3)]
    return [Design(n, *truth, *groups) for n in SIZES for groups in grouped for truth in truths]


if __name__ == "__main__":
    print("    n  per group  effect  discordant  difference  coverage  positives  contradictions")
    for each in designs():
        rates = simulated(each, 2000)
        print(
            f"{each.n:5}  {each.size:9}  {each.effect:6}  {each.discordant:10}  {each.difference:10}  "
            f"{rates.coverage:8.3f}  {rates.positives:9.3f}  {rates.contradictions:14.3f}"
        )
