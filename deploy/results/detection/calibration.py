"""How well stated probabilities of a claim's being hallucinated hold, beside what the share of such claims gives."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.claims import Claim
from moot.deploy.results.detection.estimates import (
    RESAMPLES,
    IntervalEstimate,
    calibration_null,
    estimate,
    mean_estimate,
)
from moot.deploy.results.text import Interval
from moot.metrics.calibration_error import expected_calibration_error, reliability_bins
from moot.metrics.cluster_bootstrap import resampled_sums
from moot.metrics.detection import effective_raters, error_correlation, error_pairs
from moot.protocols.claims import SUPPORTED


class DebaterErrors(FrozenModel):
    """The errors of two debaters' first stances; the second debater has heard the first's.

    Attributes:
        debaters: their roles.
        n: claims on which both stances are known.
        error_rates: of each, over these.
        rho: correlation of their errors; unknown when one of them never errs, or always.
        effective_debaters: how many independent debaters have the VARIANCE that the mean of these two has,
            2 / (1 + rho); these two are not independent, and nothing is said of how probable an error of both is.
    """

    debaters: tuple[str, str]
    n: int
    error_rates: tuple[float, float]
    rho: IntervalEstimate
    effective_debaters: IntervalEstimate


def debater_errors(claims: Sequence[Claim]) -> DebaterErrors | None:
    """How the errors of the two debaters go together; None unless there are two with first stances.

    Args:
        claims: with a gold label and a verdict each.
    """
    names = sorted({name for claim in claims for name in claim.stances})
    if len(names) != 2:
        return None
    errors = [[_errs(claim, name) for claim in claims] for name in names]
    pairs = error_pairs(*errors)
    both = pairs.sum(axis=0)
    n = int(both.sum())
    if not n:
        return None
    drawn = error_correlation(resampled_sums(pairs, [claim.group for claim in claims], RESAMPLES))
    groups = {claim.group for claim, known in zip(claims, pairs.sum(axis=1) > 0, strict=True) if known}
    rho = estimate(error_correlation(both), drawn, groups=len(groups), lowest=-1.0)
    return DebaterErrors(
        debaters=(names[0], names[1]),
        n=n,
        error_rates=(float(both[2] + both[3]) / n, float(both[1] + both[3]) / n),
        rho=rho,
        effective_debaters=_effective(rho),
    )


def _errs(claim: Claim, debater: str) -> bool | None:
    stance = claim.stances.get(debater)
    return None if stance is None else (stance == "supports") != (claim.gold == SUPPORTED)


def _effective(rho: IntervalEstimate) -> IntervalEstimate:
    """The more the errors go together, the fewer: the interval's ends change places. At a rho of -1 there is no end."""
    if rho.value is None or rho.value <= -1.0:
        return IntervalEstimate()
    ends = rho.interval
    interval = None if ends is None else (effective_raters(ends[1], 2), effective_raters(ends[0], 2))
    unbounded = interval is not None and isnan(interval[1])
    return IntervalEstimate(value=effective_raters(rho.value, 2), interval=None if unbounded else interval)


BINS = 10
"""Of the calibration error and its rows, here and in a classifier's card: equally many claims in each, as far as equal
probabilities allow."""


class Reliability(FrozenModel):
    """A row of a reliability diagram.

    Attributes:
        n: claims.
        p_hallucinated: mean of what was stated.
        hallucinated: share of them that are.
    """

    n: int
    p_hallucinated: float
    hallucinated: float


class SourceCalibration(FrozenModel):
    """What the probabilities of one source are worth; hallucinated is the event that they are of.

    Attributes:
        source: `classifier` or `judges`.
        n: claims with a probability; `unknown` how many others have a verdict and a gold label.
        hallucinated: share of the n that are.
        brier: mean squared error, 0 to 1.
        brier_of_share: the same if every claim were given that share.
        calibration_error: mean distance of shares from probabilities over the bins.
        calibration_null: 95 % of perfect forecasters with these probabilities would be found between these; None of
            too few claims.
        bins: rows of the reliability diagram, by rising probability.
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
    """Those of the sources that stated any probability, the classifier first.

    Args:
        claims: with a gold label and a verdict each.
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
    return SourceCalibration(
        source=source,
        n=len(p),
        unknown=len(claims) - len(p),
        hallucinated=share,
        brier=mean_estimate((p - truth) ** 2, [claim.group for claim, _ in known]),
        brier_of_share=share * (1.0 - share),
        calibration_error=expected_calibration_error(p, truth, bins=BINS),
        calibration_null=calibration_null(p, BINS),
        bins=[
            Reliability(n=each.n, p_hallucinated=each.confidence, hallucinated=each.accuracy)
            for each in reliability_bins(p, truth, bins=BINS)
        ],
    )
