"""Calibration of the probability that a claim is hallucinated, and correlation of the debaters' errors."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.claims import Claim
from moot.deploy.results.detection.estimates import (
    IntervalEstimate,
    coefficient,
    mean_estimate,
    measure_calibration,
)
from moot.deploy.results.text import Interval
from moot.metrics.calibration_error import reliability_bins
from moot.metrics.detection import effective_raters, error_correlation, error_pairs
from moot.metrics.jackknife import left_out_sums
from moot.protocols.claims import SUPPORTED


class DebaterErrors(FrozenModel):
    """Correlation of the errors of two debaters' first stances; the second debater has read the first's.

    Attributes:
        debaters: the two roles.
        n: claims with both stances known.
        error_rates: error rate of each debater over these claims.
        rho: correlation of the errors; unknown when one debater always or never errs. No
            interval unless each of both, one, the other and neither erring occurs.
        effective_debaters: effective sample size, 2 / (1 + rho): the number of independent debaters whose mean has
            the same VARIANCE as that of these two. It is not the probability of a common error.
    """

    debaters: tuple[str, str]
    n: int
    error_rates: tuple[float, float]
    rho: IntervalEstimate
    effective_debaters: IntervalEstimate


def debater_errors(claims: Sequence[Claim]) -> DebaterErrors | None:
    """Correlation of the two debaters' errors; None unless there are two with first stances.

    Args:
        claims: claims with a gold label and a verdict.
    """
    names = sorted({name for claim in claims for name in claim.stances})
    if len(names) != 2:
        return None
    errors = [[_is_wrong(claim, name) for claim in claims] for name in names]
    pairs = error_pairs(*errors)
    both = pairs.sum(axis=0)
    n = int(both.sum())
    if not n:
        return None
    known = pairs.sum(axis=1) > 0
    groups = [claim.group for claim, is_known in zip(claims, known, strict=True) if is_known]
    rho = coefficient(error_correlation(both), error_correlation(left_out_sums(pairs[known], groups)), lowest=-1.0)
    if both.min() == 0:  # such a correlation varies less than it would in other claims
        rho = IntervalEstimate(value=rho.value)
    return DebaterErrors(
        debaters=(names[0], names[1]),
        n=n,
        error_rates=(float(both[2] + both[3]) / n, float(both[1] + both[3]) / n),
        rho=rho,
        effective_debaters=_effective(rho),
    )


def _is_wrong(claim: Claim, debater: str) -> bool | None:
    stance = claim.stances.get(debater)
    return None if stance is None else (stance == "supports") != (claim.gold == SUPPORTED)


def _effective(rho: IntervalEstimate) -> IntervalEstimate:
    """Effective number of debaters. It falls as rho rises, so the interval is reversed; unbounded at rho = -1."""
    if rho.value is None or rho.value <= -1.0:
        return IntervalEstimate()
    ends = rho.interval
    interval = None if ends is None else (effective_raters(ends[1], 2), effective_raters(ends[0], 2))
    unbounded = interval is not None and isnan(interval[1])
    return IntervalEstimate(value=effective_raters(rho.value, 2), interval=None if unbounded else interval)


BINS = 10
"""Bins of the calibration error, here and in a classifier's card, of equal frequency as far as equal probabilities
allow."""


class Reliability(FrozenModel):
    """Bin of a reliability diagram.

    Attributes:
        n: number of claims.
        p_hallucinated: mean stated probability.
        hallucinated: share of hallucinated claims.
    """

    n: int
    p_hallucinated: float
    hallucinated: float


class SourceCalibration(FrozenModel):
    """Calibration of the probabilities of one source; the event is `hallucinated`.

    Attributes:
        source: `classifier` or `judges`.
        n: claims with a probability.
        unknown: claims with a verdict and a gold label, but without a probability.
        hallucinated: base rate, the share of hallucinated claims.
        brier: Brier score, 0 to 1.
        brier_of_share: Brier score of always stating the base rate.
        calibration_error: expected calibration error (ECE) over the bins.
        calibration_null: central 95 % of the ECE of a perfectly calibrated forecaster with these probabilities; None
            for too few claims.
        bins: the reliability diagram, by ascending probability.
    """

    source: str
    n: int
    unknown: int
    hallucinated: float
    brier: IntervalEstimate
    brier_of_share: float
    calibration_error: float
    calibration_null: Interval | None
    bins: list[Reliability]


def calibrations(claims: Sequence[Claim]) -> list[SourceCalibration]:
    """Calibration of each source that states a probability, the classifier first.

    Args:
        claims: claims with a gold label and a verdict.
    """
    sources = {
        "classifier": [claim.p_classifier for claim in claims],
        "judges": [claim.p_judges for claim in claims],
    }
    return [
        _calibration(name, claims, stated) for name, stated in sources.items() if any(p is not None for p in stated)
    ]


def _calibration(source: str, claims: Sequence[Claim], stated: Sequence[float | None]) -> SourceCalibration:
    known = [(claim, p) for claim, p in zip(claims, stated, strict=True) if p is not None]
    p = np.array([each for _, each in known])
    truth = np.array([claim.is_hallucinated for claim, _ in known], np.float64)
    share = float(truth.mean())
    groups = [claim.group for claim, _ in known]
    measured = measure_calibration(p, truth, groups, BINS)
    return SourceCalibration(
        source=source,
        n=len(p),
        unknown=len(claims) - len(p),
        hallucinated=share,
        brier=mean_estimate((p - truth) ** 2, groups),
        brier_of_share=share * (1.0 - share),
        calibration_error=measured.error,
        calibration_null=measured.null,
        bins=[
            Reliability(n=each.n, p_hallucinated=each.confidence, hallucinated=each.accuracy)
            for each in reliability_bins(p, truth, bins=BINS)
        ],
    )
