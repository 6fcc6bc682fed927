"""The distributions that EVINCE prints, with what the formulas give for them; printed figures are never tuned to.

| case, round | printed WD / MI / JSD | verdict |
|---|---|---|
| dengue 1 | 1.7 / .43 / 1.366 | impossible: a 0-1 WD is at most 1, a JSD .6931 (ln 2); disjoint sides have MI 0 |
| dengue 2 | 1.1 / .46 / .905 | impossible: WD is .25, JSD .1247 nat (.1799 bit) |
| dengue 3 | .9 / .49 / .059 | impossible: the sides are equal, so WD and JSD are 0, and MI is the entropy, .824 |
| jaundice 1 | 1.30 / .3918 / .2172 | impossible: WD is .35, JSD .1568 nat (.2262 bit) |
| jaundice 2 | 1.12 / .411 / .1222 | impossible: the sides swapped, so every symmetric measure is that of round 1 |
| jaundice 3 | .12 / .4908 / .0037 | WD is .05, JSD agrees |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from moot.metrics.divergence import (
    jensen_shannon_divergence,
    total_variation,
)
from moot.metrics.transport import wasserstein

Row = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    """One printed round: both sides, the printed JSD, and what the formulas give (nats)."""

    a: Mapping[str, float]
    b: Mapping[str, float]
    printed_jsd: float
    jsd_nat: float
    variation: float

    def rows(self) -> tuple[Row, Row]:
        """Both sides over the labels of either, divided by their sums (one printed row sums to .95)."""
        labels = sorted({*self.a, *self.b})
        a, b = (np.array([side.get(label, 0.0) for label in labels]) for side in (self.a, self.b))
        return a / a.sum(), b / b.sum()


_CHIK = {"dengue": 0.60, "chikungunya": 0.25, "zika": 0.15}
_HEPATITIS = {"HCV": 0.40, "HBV": 0.30, "cirrhosis": 0.15, "obstructive jaundice": 0.10, "ALF": 0.05}
_OTHERS = {"HBV": 0.35, "HCV": 0.25, "obstructive jaundice": 0.20, "alcoholic hepatitis": 0.15, "HAV": 0.05}
_EQUAL = {"dengue": 0.60, "chikungunya": 0.35, "zika": 0.05}

ROUNDS = {
    "dengue 1": Round(_CHIK, {"viral": 0.60, "autoimmune": 0.20, "bacterial": 0.15}, 1.366, 0.6931, 1.0),
    "dengue 2": Round(_CHIK, {"dengue": 0.50, "chikungunya": 0.30, "viral": 0.20}, 0.905, 0.1247, 0.25),
    "dengue 3": Round(_EQUAL, _EQUAL, 0.059, 0.0, 0.0),
    "jaundice 1": Round(_HEPATITIS, _OTHERS, 0.2172, 0.1568, 0.35),
    "jaundice 2": Round(_OTHERS, _HEPATITIS, 0.1222, 0.1568, 0.35),
    "jaundice 3": Round(
        {"HCV": 0.35, "HBV": 0.25, "cirrhosis": 0.20, "obstructive jaundice": 0.15, "ALF": 0.05},
        {"HCV": 0.35, "HBV": 0.30, "cirrhosis": 0.20, "obstructive jaundice": 0.10, "ALF": 0.05},
        0.0037,
        0.0037,
        0.05,
    ),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_what_the_formulas_give(name: str) -> None:
    given = ROUNDS[name]
    a, b = given.rows()
    assert jensen_shannon_divergence(a, b) == pytest.approx(given.jsd_nat, abs=5e-5)
    assert total_variation(a, b) == pytest.approx(given.variation, abs=1e-12)
    assert wasserstein(a, b) == pytest.approx(given.variation, abs=1e-12)


def test_only_the_last_printed_divergence_agrees() -> None:
    agree = {
        name
        for name, given in ROUNDS.items()
        if any(
            jensen_shannon_divergence(*given.rows()) / unit == pytest.approx(given.printed_jsd, abs=5e-5)
            for unit in (1.0, math.log(2))  # nat, bit
        )
    }
    assert agree == {"jaundice 3"}
    above = {name for name, given in ROUNDS.items() if given.printed_jsd > math.log(2)}
    assert above == {"dengue 1", "dengue 2"}
