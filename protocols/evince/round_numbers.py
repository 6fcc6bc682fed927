"""Numbers of a round: divergences between the sides, entropies, and information gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from moot.metrics.divergence import (
    cross_entropy,
    entropy,
    floored,
    generalised_jensen_shannon,
    jensen_shannon_divergence,
    kl_divergence,
    mixture,
    mutual_information,
    normalised_mutual_information,
    reliability_weights,
    total_variation,
)
from moot.metrics.transport import wasserstein
from moot.protocols.evince.schedule import RoundSignals

Floats = npt.NDArray[np.float64]


_RECORDED = ("wd", "jsd", "jsd_max", "tv", "mi", "nmi", "kl", "kl_floored", "ce", "mixture_entropy")


@dataclass(frozen=True, slots=True)
class RoundNumbers:
    """The numbers of one round; entropies and divergences in nats.

    Attributes:
        rows: `(sides, labels + 1)`, the distributions.
        names: the sides, in the same order.
        wd, jsd, tv, mi, nmi: over the pairs of sides, their mean; `jsd_max` the largest.
        kl, ce: by ordered pair, `A>B`.
        kl_floored: number of ordered pairs whose `kl` would be infinite without the smoothing, which all have.
        generalised_jsd: of all sides with equal weights; None with two sides, for which it equals `jsd`.
        entropies: by side.
        mixed: the sides' mixture, weighted by reliability.
        mixture_entropy: its entropy.
    """

    names: tuple[str, ...]
    rows: Floats
    wd: float
    jsd: float
    jsd_max: float
    tv: float
    mi: float
    nmi: float
    kl: dict[str, float]
    ce: dict[str, float]
    kl_floored: int
    generalised_jsd: float | None
    entropies: tuple[float, ...]
    mixed: Floats
    mixture_entropy: float

    def signals(self, before: RoundNumbers | None, quality: float | None, top_k: int) -> RoundSignals:
        """Inputs of a schedule; `before` is the previous round."""
        most = math.log(max(2, min(top_k, self.rows.shape[1] - 1)))
        gain = None
        if before is not None:
            gain = min(1.0, max(-1.0, (before.mixture_entropy - self.mixture_entropy) / most))
        return RoundSignals(self.tv, self.jsd, gain, quality, min(1.0, self.mixture_entropy / most))

    def record(self) -> dict[str, Any]:
        """Numbers of the event `round`."""
        several = () if self.generalised_jsd is None else ("generalised_jsd",)
        return {name: getattr(self, name) for name in (*_RECORDED, *several)}


def measure(names: Sequence[str], rows: Floats, ground: Floats | None, kl_epsilon: float) -> RoundNumbers:
    """Compute all numbers of a round.

    Args:
        names: the sides.
        rows: `(sides, labels + 1)`, their distributions.
        ground: distances between the labels, for the Wasserstein distance; None for 0/1.
        kl_epsilon: smoothing, see `moot.metrics.divergence.kl_divergence`.
    """
    pairs = list(combinations(range(len(rows)), 2))
    first, second = rows[[i for i, _ in pairs]], rows[[j for _, j in pairs]]
    ordered = list(permutations(range(len(rows)), 2))
    source, target = rows[[i for i, _ in ordered]], rows[[j for _, j in ordered]]
    keys = [f"{names[i]}>{names[j]}" for i, j in ordered]
    jsd = jensen_shannon_divergence(first, second)
    mixed = reliable_mixture(rows)
    return RoundNumbers(
        names=tuple(names),
        rows=rows,
        wd=_mean(_wasserstein(first, second, ground)),
        jsd=_mean(jsd),
        jsd_max=float(np.max(jsd)),
        tv=_mean(total_variation(first, second)),
        mi=_mean(mutual_information(first, second)),
        nmi=_mean(normalised_mutual_information(first, second)),
        kl=dict(zip(keys, map(float, kl_divergence(source, target, epsilon=kl_epsilon)), strict=True)),
        ce=dict(zip(keys, map(float, cross_entropy(source, target, epsilon=kl_epsilon)), strict=True)),
        kl_floored=int(np.sum(floored(source, target))),
        generalised_jsd=float(generalised_jensen_shannon(rows)) if len(rows) > 2 else None,
        entropies=tuple(float(h) for h in entropy(rows)),
        mixed=mixed,
        mixture_entropy=float(entropy(mixed)),
    )


def reliable_mixture(rows: Floats) -> Floats:
    """The mixture of distributions over labels and "(other)", weighted by reliability (maxim 4.1).

    "(other)" counts as a class only if some side assigns mass to it: otherwise a coin flip between the labels of a
    yes/no question would not count as saying nothing.
    """
    named = rows if rows[:, -1].any() else rows[:, :-1]
    return np.asarray(mixture(rows, reliability_weights(named)))


def _wasserstein(first: Floats, second: Floats, ground: Floats | None) -> Floats:
    """Distance over the labels with mass; the others do not contribute, but cost time."""
    if ground is None:
        return np.asarray(wasserstein(first, second))
    named = np.flatnonzero((first > 0.0).any(axis=0) | (second > 0.0).any(axis=0))
    return np.asarray(wasserstein(first[:, named], second[:, named], ground[np.ix_(named, named)]))


def _mean(values: Floats) -> float:
    return fmean(float(value) for value in values)
