"""Summary of a run over claims: classification figures overall and by category, calibration, duration."""

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
"""Tag with the category of a benchmark's claim."""


class DurationSummary(FrozenModel):
    """Durations in seconds from a debate's start to its verdict, waiting for concurrent debates included.

    Attributes:
        n: number of finished claims with a known duration.
        p90: the 90th percentile.
    """

    n: int
    mean: float
    median: float
    p90: float


class Detection(FrozenModel):
    """Detection figures of a run over claims.

    Attributes:
        claims: number of claims, `finished + failed + open`.
        open: claims without a verdict; `withdrawn` of them are withdrawn.
        unlabelled: finished claims without a gold label.
        trained_on: labelled finished claims that the classifier was trained on, in any spelling.
        group_trained_on: other labelled finished claims with a training claim in their group. These three kinds are
            excluded from every figure but the seconds.
        whole: figures over all other finished claims; None without any.
        by_category: figures by the tag `category`; empty unless there are several.
        calibration: calibration of the probabilities, by source.
        debaters: correlation of the errors of the debaters' first stances; None unless there are two with stances.
        hallusionbench: scores as that benchmark's authors define them; None for another task.
        seconds: durations; None when no finished claim has a known one.
    """

    claims: int
    finished: int
    failed: int
    open: int
    withdrawn: int = 0
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
    """Detection figures of a run's claims, finished or not; see `read_claims`."""
    finished = [claim for claim in claims if claim.state == "finished"]
    labelled = [claim for claim in finished if claim.gold is not None]
    counted = counted_claims(claims)
    return Detection(
        claims=len(claims),
        finished=len(finished),
        failed=sum(claim.state == "failed" for claim in claims),
        open=sum(claim.state in ("open", "withdrawn") for claim in claims),
        withdrawn=sum(claim.state == "withdrawn" for claim in claims),
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
    """Fields of a comparison's row about a run's claims: `claims`, `seconds`, `trained_on` and `group_trained_on`."""
    if found is None:
        return {"claims": None, "seconds": None, "trained_on": 0, "group_trained_on": 0}
    excluded = {"trained_on": found.trained_on, "group_trained_on": found.group_trained_on}
    return {"claims": found.whole, "seconds": found.seconds, **excluded}


def counted_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Scored claims: finished, with a gold label, and neither they nor their group in the training data."""
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
