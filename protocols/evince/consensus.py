"""The end of a debate: the sides' distributions weighed by the quality of their arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from moot.metrics.divergence import entropy, mixture
from moot.protocols.distribution import OTHER, Cleaned
from moot.protocols.evince.standing import Standing
from moot.protocols.seeds import seeded

_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Consensus:
    """What the sides say together.

    Attributes:
        cleaned: `P = sum(G_i P_i) / sum(G_i)` over the labels and "(other)", with the CRIT scores G.
        weights: by side, summing to 1.
        weights_from: `crit`, or `equal` where a score is unknown or all are 0.
        entropy: in nats.
        uncertainty: entropy over `ln(min(top_k, labels))`, at most 1.
        answer: the likeliest label; None when "(other)" is the likeliest: the sides mean something outside the set.
        confidence: its probability; that of "(other)" counts against it.
    """

    cleaned: Cleaned
    weights: dict[str, float]
    weights_from: Literal["crit", "equal"]
    entropy: float
    uncertainty: float
    answer: str | None
    confidence: float | None

    def distribution(self) -> dict[str, float]:
        """By label and "(other)", as a verdict holds it."""
        masses = zip(self.cleaned.labels, self.cleaned.probabilities, strict=True)
        return {label: min(1.0, float(p)) for label, p in masses}

    def record(self) -> dict[str, Any]:
        """As the event `consensus` holds it."""
        return {
            "weights": self.weights,
            "weights_from": self.weights_from,
            "distribution": self.cleaned.named(),
            "entropy": self.entropy,
            "uncertainty": self.uncertainty,
            "answer": self.answer,
            "confidence": self.confidence,
        }


def consensus_of(standings: Sequence[Standing], *, top_k: int, seed: int) -> Consensus:
    """Weigh the sides' last distributions (EVINCE, figure 7.1, step 3); equal bests are drawn by the case's seed."""
    scores = [standing.crit for standing in standings]
    known = [score for score in scores if score is not None]
    by_crit = len(known) == len(scores) and sum(known) > 0.0
    weights = np.array(known if by_crit else [1.0] * len(scores))
    weights = weights / weights.sum()
    labels = standings[0].cleaned.labels
    mixed = mixture(np.stack([standing.cleaned.probabilities for standing in standings]), weights)
    spread = float(entropy(mixed))
    most = math.log(max(2, min(top_k, len(labels) - 1)))
    best = [label for label, p in zip(labels, mixed, strict=True) if mixed.max() - p <= _EQUAL]
    winner = best[0] if len(best) == 1 else seeded(seed, "tie/consensus").choice(best)
    return Consensus(
        cleaned=Cleaned(labels, mixed),
        weights={s.name: float(w) for s, w in zip(standings, weights, strict=True)},
        weights_from="crit" if by_crit else "equal",
        entropy=spread,
        uncertainty=min(1.0, spread / most),
        answer=None if winner == OTHER else winner,
        confidence=None if winner == OTHER else min(1.0, float(mixed.max())),
    )
