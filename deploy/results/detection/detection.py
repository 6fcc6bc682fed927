"""A run over claims in figures: what its verdicts are worth, as a whole and by category, and what they take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.calibration import DebaterErrors, SourceCalibration, calibrations, debater_errors
from moot.deploy.results.detection.claims import Claim
from moot.deploy.results.detection.figures import ClaimSet, claim_set
from moot.deploy.results.detection.hallusionbench import HallusionAccuracies, hallusion_accuracies

CATEGORY = "category"
"""The tag that groups a benchmark's claims."""


class DurationSummary(FrozenModel):
    """Seconds from a debate's beginning to its verdict, waiting for others that were open at once included.

    Attributes:
        n: finished claims that they are over.
        p90: nine in ten took no longer.
    """

    n: int
    mean: float
    median: float
    p90: float


class Detection(FrozenModel):
    """A run over claims.

    Attributes:
        claims: of the run, `finished + failed + open`.
        unlabelled: finished ones without a gold label; `trained_on`: others that the classifier was trained on, in
            whatever spelling; `group_trained_on`: yet others of whose group it was trained on a claim. None of them
            is in any figure but the seconds.
        whole: over all others that are finished; None when there is none.
        by_category: the same by the tag `category`; empty unless there are several.
        calibration: of the probabilities, by who stated them.
        debaters: how the errors of their first stances go together; None unless two of them have any.
        hallusionbench: as that benchmark's authors score it; None for another one.
        seconds: None when no finished claim says how long it took.
    """

    claims: int
    finished: int
    failed: int
    open: int
    unlabelled: int
    trained_on: int
    group_trained_on: int
    whole: ClaimSet | None
    by_category: list[ClaimSet]
    calibration: list[SourceCalibration]
    debaters: DebaterErrors | None
    hallusionbench: list[HallusionAccuracies] | None
    seconds: DurationSummary | None


def measure_detection(claims: Sequence[Claim]) -> Detection:
    """The figures of a run's claims, finished or not; see `read_claims`."""
    finished = [claim for claim in claims if claim.state == "finished"]
    labelled = [claim for claim in finished if claim.gold is not None]
    counted = counted_claims(claims)
    return Detection(
        claims=len(claims),
        finished=len(finished),
        failed=sum(claim.state == "failed" for claim in claims),
        open=sum(claim.state == "open" for claim in claims),
        unlabelled=len(finished) - len(labelled),
        trained_on=sum(claim.trained_on == "claim" for claim in labelled),
        group_trained_on=sum(claim.trained_on == "group" for claim in labelled),
        whole=claim_set(counted) if counted else None,
        by_category=_by_category(counted),
        calibration=calibrations(counted),
        debaters=debater_errors(counted),
        hallusionbench=hallusion_accuracies(claims),
        seconds=_seconds([claim.wall_s for claim in finished if claim.wall_s is not None]),
    )


def claims_of(found: Detection | None) -> dict[str, Any]:
    """What a row of several runs says of a run's claims: `claims`, `seconds`, `trained_on` and `group_trained_on`."""
    if found is None:
        return {"claims": None, "seconds": None, "trained_on": 0, "group_trained_on": 0}
    left_out = {"trained_on": found.trained_on, "group_trained_on": found.group_trained_on}
    return {"claims": found.whole, "seconds": found.seconds, **left_out}


def counted_claims(claims: Iterable[Claim]) -> list[Claim]:
    """The claims that figures are over: finished, with a gold label, and none that the classifier was trained on."""
    return [c for c in claims if c.state == "finished" and c.gold is not None and not c.trained_on]


def _by_category(claims: Sequence[Claim]) -> list[ClaimSet]:
    categories = sorted({claim.tags.get(CATEGORY, "") for claim in claims})
    if len(categories) < 2:
        return []
    return [
        claim_set([claim for claim in claims if claim.tags.get(CATEGORY, "") == category], category)
        for category in categories
    ]


def _seconds(walls: Sequence[float]) -> DurationSummary | None:
    if not walls:
        return None
    median, p90 = np.quantile(walls, [0.5, 0.9])
    return DurationSummary(n=len(walls), mean=float(np.mean(walls)), median=float(median), p90=float(p90))
