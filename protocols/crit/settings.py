"""The settings of CRIT; protocols that use it have them as their group `crit`."""

from __future__ import annotations

from pydantic import Field

from moot.protocols.crit.scoring import Rivals
from moot.protocols.settings import Settings, Share


class CritSettings(Settings):
    """How far and how closely judges read.

    Attributes:
        max_depth: how deep reasons that are themselves claims are read as separate documents; 0: not at all.
        max_calls: maximum number of asks for one document and judge, including the first; further asks read the reasons
            with the most credible sources.
        max_reasons: maximum number of reasons that a judge is asked for.
        max_rivals: maximum number of rival reasons that a judge is asked for.
        rivals: `printed`: every rival counts, so that a weak one can raise the score; `capped`: no rival raises it. See
            `moot.protocols.crit.scoring.gamma_of`.
        weak_below: a reason is weak if its gamma, the mean over the judges that name it, is below this. A debate is
            told of weak reasons if there are any, and always, as such, of those that contradict the given facts.
        weak_points: maximum number of weak reasons that are named, the weakest first by theta times gamma.
    """

    max_depth: int = Field(default=1, ge=0, le=10)
    max_calls: int = Field(default=6, ge=1, le=1000)
    max_reasons: int = Field(default=5, ge=1, le=50)
    max_rivals: int = Field(default=3, ge=0, le=50)
    rivals: Rivals = "printed"
    weak_below: Share = 0.5
    weak_points: int = Field(default=2, ge=0, le=50)
