"""The settings of CRIT; protocols that use it have them as their group `crit`."""

from __future__ import annotations

from pydantic import Field

from moot.protocols.crit.scoring import Rivals
from moot.protocols.settings import Settings


class CritSettings(Settings):
    """How far and how closely judges read.

    Attributes:
        max_depth: how often a reason that is itself a claim may be read as a document of its own; 0: never.
        max_calls: asks for one document and judge, the first one included; further ones go to the reasons of the
            most credible sources.
        max_reasons: reasons that a judge is asked for at most.
        max_rivals: rival reasons that a judge is asked for at most.
        rivals: `printed`: every rival counts, so that a feeble one raises the score; `capped`: no rival raises it. See
            `moot.protocols.crit.scoring.gamma_of`.
        weak_points: how many of the weakest reasons are named for feeding back into a debate.
    """

    max_depth: int = Field(default=1, ge=0, le=10)
    max_calls: int = Field(default=6, ge=1, le=1000)
    max_reasons: int = Field(default=5, ge=1, le=50)
    max_rivals: int = Field(default=3, ge=0, le=50)
    rivals: Rivals = "printed"
    weak_points: int = Field(default=2, ge=0, le=50)
