"""The kind `logistic`: a head on vectors of an encoder as it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from moot.actors.classifiers.card import Head
from moot.deploy.training.learned import Learned, Material
from moot.metrics.logistic_regression import fit_chosen, held_out_probabilities


def learn_logistic(vectors: npt.NDArray[np.float32], masked: npt.NDArray[np.float32], material: Material) -> Learned:
    """A head whose penalty is chosen by cross-validation, inside every training part anew for the held-out figures.

    Args:
        vectors: `(n, d)`, unit vectors of the summaries.
        masked: `(n, d)`, of the summaries without verdict words.
        material: labels, groups and folds.
    """
    of = (material.outcome, material.groups)
    chosen = fit_chosen(vectors, *of, material.folds, material.seed)
    head = Head(
        intercept=chosen.model.intercept,
        coefficients=tuple(chosen.model.coefficients.tolist()),
        least_probability=chosen.least,
    )
    p, p_masked = (
        held_out_probabilities(each, *of, material.fold, material.folds, material.seed) for each in (vectors, masked)
    )
    return Learned(head, chosen.ridge, p, p_masked)
