"""How a recorded reply was sampled: what tells log-probabilities of one kind from those of another."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

UNKNOWN = "unknown"
"""Stands for the model and the stage of a reply of which nothing is on record."""


Floating = TypeVar("Floating", bound=np.floating)

MASKED = "masked"
"""The stage of log-probabilities that are taken after a schema's mask."""

NO_CHOICE = -1e-6
"""From this log-probability on, a token behind a mask may have been the only one that its schema permits."""


def without_forced(logprobs: npt.NDArray[Floating]) -> npt.NDArray[Floating]:
    """Log-probabilities taken after a schema's mask, NaN where there may have been no choice: such a token does not say
    how sure the model was.

    >>> without_forced(np.array([0.0, -0.5], np.float32)).tolist()
    [nan, -0.5]
    """
    return np.where(logprobs >= NO_CHOICE, logprobs.dtype.type(np.nan), logprobs)


class Sampling(NamedTuple):
    """How a reply was sampled, and where its log-probabilities were taken; replies that differ in it are never pooled.

    Attributes:
        temperature, top_p: None when unknown or the server's default.
        stage: `before` or `after` temperature and top-p, `raw` (one of these, and before a schema's mask), `masked`
            (after that), or `unknown`.
    """

    temperature: float | None
    top_p: float | None
    stage: str

    @classmethod
    def recorded(cls, temperature: float | None, top_p: float | None, logprob_stage: str | None) -> Sampling:
        """From a row of the record, whose older versions say nothing of the stage."""
        return cls(temperature, top_p, logprob_stage or UNKNOWN)

    @property
    def words(self) -> str:
        """Such as `T 0.3, top-p 0.9, log-probabilities before them`."""
        t, p = ("?" if value is None else f"{value:g}" for value in (self.temperature, self.top_p))
        return f"T {t}, top-p {p}, log-probabilities {_STAGES.get(self.stage, self.stage)}"


_STAGES = {
    UNKNOWN: "at an unknown stage",
    "before": "before them",
    "after": "after them",
    "raw": "before their schema's mask",
    MASKED: "after their schema's mask",
}
