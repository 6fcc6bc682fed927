"""The replies measured: every feature of every reply, and the numbers that the papers correlate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.deploy.analysis.replies import Replies
from moot.metrics.confidence_features import LEAST_LOGPROB, Feature, Origin, Signal, features, window_features
from moot.metrics.ragged import Ragged

Floats = npt.NDArray[np.float64]

ENTROPY = "renormalised"
"""Which entropy is a feature: the one over the listed alternatives alone. The bounds stand in a table of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Every reply in numbers.

    Attributes:
        replies: whose they are.
        features: names of the columns.
        x: `(R, F)`, NaN where a reply has no such window.
        mu: `(R,)`, mean log-probability of the whole reply; NaN without any.
        sigma: its standard deviation over the tokens (of the population).
        length: number of tokens with a log-probability; NaN without any.
        unknown_tokens: how many tokens have a log-probability that is none (not finite, or a vendor's -9999).
    """

    replies: Replies
    features: tuple[Feature, ...]
    x: Floats
    mu: Floats
    sigma: Floats
    length: Floats
    unknown_tokens: int

    def column(self, name: str) -> Floats:
        """One feature by its name."""
        return self.x[:, [feature.name for feature in self.features].index(name)]


def measure(replies: Replies) -> Measured:
    """Extract every feature: both signals, where there are alternatives, and both origins."""
    signals: list[tuple[Signal, Ragged]] = [("logprob", replies.logprobs)]
    if ENTROPY in replies.entropies:
        signals.append(("entropy", replies.entropies[ENTROPY]))
    names: list[Feature] = []
    columns: list[Floats] = []
    for signal, values in signals:
        origins: list[tuple[Origin, Ragged]] = [("token 0", values)]
        if replies.content_start.any():
            origins.append(("content", values.from_starts(np.minimum(replies.content_start, values.lengths))))
        for origin, part in origins:
            names += features(signal, origin)
            columns.append(window_features(part))
    x = np.concatenate(columns, axis=1)
    place = {feature.name: number for number, feature in enumerate(names)}
    lengths = replies.logprobs.lengths.astype(np.float64)
    tokens = replies.logprobs.values
    return Measured(
        replies=replies,
        features=tuple(names),
        x=x,
        mu=x[:, place["logprob.full.mean"]],
        sigma=x[:, place["logprob.full.std"]],
        length=np.where(replies.has_logprobs & (lengths > 0), lengths, np.nan),
        unknown_tokens=int((~np.isfinite(tokens) | (tokens <= LEAST_LOGPROB)).sum()),
    )
