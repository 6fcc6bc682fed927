"""Sources of a verdict's figures: what the payload of any protocol's verdict may say of them."""

from __future__ import annotations

from typing import Any, Self

from moot.protocols.events import EventData, OrNone


class VerdictSources(EventData):
    """Where the figures of a verdict are from; None where its payload does not say.

    Attributes:
        distribution_from: `consensus` of stated probabilities, or `votes`, which are shares and nobody's probability.
        confidence_from: `judge`, a judge's score of the answer; `intrinsic`, the mean probability that the answer had
            for those who gave it; or `unknown`.
        confidence_stage: where these probabilities are taken, see `Intrinsic.stage`.
    """

    distribution_from: OrNone[str] = None
    confidence_from: OrNone[str] = None
    confidence_stage: OrNone[str] = None

    @classmethod
    def of(cls, payload: Any) -> Self:
        """Those that a payload states."""
        return cls.read(payload) or cls()
