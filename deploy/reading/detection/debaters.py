"""Whether the debaters' first stances err together: what a second debater can add.

The second speaks after the first and has read its message, so part of what they share may be that.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from moot.deploy.reading.detection.claims import Claim
from moot.deploy.reading.detection.estimates import RESAMPLES, Estimate, estimate
from moot.deploy.reading.frozen import Frozen
from moot.metrics.cluster_bootstrap import resampled_sums
from moot.metrics.detection import effective_raters, error_correlation, error_pairs
from moot.protocols.claims import SUPPORTED


class DebaterErrors(Frozen):
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
    rho: Estimate
    effective_debaters: Estimate


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


def _effective(rho: Estimate) -> Estimate:
    """The more the errors go together, the fewer: the interval's ends change places. At a rho of -1 there is no end."""
    if rho.value is None or rho.value <= -1.0:
        return Estimate()
    ends = rho.interval
    interval = None if ends is None else (effective_raters(ends[1], 2), effective_raters(ends[0], 2))
    unbounded = interval is not None and isnan(interval[1])
    return Estimate(value=effective_raters(rho.value, 2), interval=None if unbounded else interval)
