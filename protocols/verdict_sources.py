"""Sources of a verdict's figures, from the payload of any protocol's verdict."""

from __future__ import annotations

from typing import Any, Self

from moot.protocols.events import EventData, OrNone


class VerdictSources(EventData):
    """Sources of a verdict's figures; None where its payload does not state them.

    Attributes:
        distribution_from: `consensus` of stated probabilities, or `votes`, which are shares, not probabilities.
        confidence_from: `judge`, a judge's score of the answer; `intrinsic`, the mean probability of the answer for the
            agents that gave it; or `unknown`.
        confidence_stage: sampling stage of these probabilities, see `Intrinsic.stage`.
        confidence_known, confidence_agents: number of these agents whose probability is known, and of all of them;
            only if they differ.
    """

    distribution_from: OrNone[str] = None
    confidence_from: OrNone[str] = None
    confidence_stage: OrNone[str] = None
    confidence_known: OrNone[int] = None
    confidence_agents: OrNone[int] = None

    @classmethod
    def of(cls, payload: Any) -> Self:
        """Sources that a payload states."""
        return cls.read(payload) or cls()
