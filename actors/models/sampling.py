"""Sampling settings of recorded replies, which separate log-probabilities of different kinds."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

UNKNOWN = "unknown"
"""Model or stage of a reply without a record of it."""


Floating = TypeVar("Floating", bound=np.floating)

MASKED = "masked"
"""Stage of log-probabilities that are taken after a schema's mask."""

NO_CHOICE = -1e-6
"""Log-probability from which a token behind a mask may have been the only one that its schema permits."""


def mask_forced_tokens(logprobs: npt.NDArray[Floating]) -> npt.NDArray[Floating]:
    """Masks forced tokens: NaN where a schema's mask may have left no choice, which shows no confidence of the model.

    >>> mask_forced_tokens(np.array([0.0, -0.5], np.float32)).tolist()
    [nan, -0.5]
    """
    return np.where(logprobs >= NO_CHOICE, logprobs.dtype.type(np.nan), logprobs)


def may_be_masked(stage: str, constrained: bool) -> bool:
    """Whether a schema's mask may have changed log-probabilities: at an unknown stage those of a constrained reply.

    Args:
        stage: sampling stage, see `Sampling`.
        constrained: whether the reply was constrained to a schema; no mask changes an unconstrained one.

    >>> may_be_masked("masked", True), may_be_masked("unknown", True), may_be_masked("unknown", False)
    (True, True, False)
    """
    return stage == MASKED or (constrained and stage == UNKNOWN)


class Sampling(NamedTuple):
    """Sampling settings of a reply, and the stage of its log-probabilities; replies that differ are never pooled.

    Attributes:
        temperature, top_p: None when unknown or the server's default.
        stage: `before` or `after` temperature and top-p, `raw` (one of these, and before a schema's mask), `masked`
            (after that), or `unknown`.
        constrained: whether the reply was constrained to a schema; only with an unknown stage, the others imply it.
    """

    temperature: float | None
    top_p: float | None
    stage: str
    constrained: bool = False

    @classmethod
    def recorded(
        cls, temperature: float | None, top_p: float | None, logprob_stage: str | None, constrained: bool | None
    ) -> Sampling:
        """Sampling settings from a row of the record; older versions lack the stage and the constraint.

        A reply without this information counts as unconstrained: most of those records are older than schemas, and
        excluding tokens without need would hide the confidence of their models.
        """
        stage = logprob_stage or UNKNOWN
        return cls(temperature, top_p, stage, bool(constrained) and stage == UNKNOWN)

    @property
    def may_be_masked(self) -> bool:
        """See `may_be_masked`."""
        return may_be_masked(self.stage, self.constrained)

    @property
    def words(self) -> str:
        """Display text, such as `T 0.3, top-p 0.9, log-probabilities before them`."""
        t, p = ("?" if value is None else f"{value:g}" for value in (self.temperature, self.top_p))
        constrained = ", of replies constrained to a schema" if self.constrained else ""
        return f"T {t}, top-p {p}, log-probabilities {_STAGES.get(self.stage, self.stage)}{constrained}"


_STAGES = {
    UNKNOWN: "at an unknown stage",
    "before": "before them",
    "after": "after them",
    "raw": "before their schema's mask",
    MASKED: "after their schema's mask",
}
