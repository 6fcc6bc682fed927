"""What comes of learning from summaries: a head, and what models that had not seen them said of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.actors.classifiers.card import Head

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Material:
    """What is learnt from.

    Attributes:
        outcome: `(n,)`, 1 for a hallucinated claim.
        groups: `(n,)`, those of one group are in one fold.
        fold: `(n,)`, 0 to `folds - 1`.
        folds, seed: of the cross-validation.
    """

    outcome: Floats
    groups: npt.NDArray[np.str_]
    fold: Numbers
    folds: int
    seed: int


@dataclass(frozen=True)
class Learned:
    """A head, and its held-out probabilities.

    Attributes:
        head: fitted to all summaries.
        ridge: its penalty.
        p: `(n,)`, of "hallucinated", each by a model that has not seen the summary's fold.
        p_masked: `(n,)`, the same of heads that learnt from, and read, summaries without verdict words; a body of the
            kind `setfit` has learnt from the summaries as they are.
    """

    head: Head
    ridge: float
    p: Floats
    p_masked: Floats
