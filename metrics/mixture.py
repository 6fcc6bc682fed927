"""What several distributions over the same labels say together."""

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.distribution import Floats, Values, known_rows, row_weights, values
from moot.metrics.divergence import entropy

_NONE = 1e-12  # reliability of this size is rounding: the entropy of a uniform distribution is log k only nearly


def reliability_weights(rows: npt.ArrayLike) -> Floats:
    """Weights from how sure each distribution is, `w_i = r_i / sum r_j` with `r_i = 1 - H(p_i) / ln k`.

    Sure is not right: a model that is certain and wrong takes the whole weight from one that hesitates.

    Args:
        rows: `(..., m, k)`, distributions. Every column counts as a class in k, whether or not anybody gives it mass:
            a column for what is outside the labels does, too.

    Returns:
        `(..., m)`, shares that sum to 1: equal when no row says anything (all uniform, or k = 1), and 0 for a uniform
        row beside one that is not. All NaN when one row is no distribution: leave such a row out first.

    Raises:
        ValueError: if `rows` has fewer than two axes.

    Source: EVINCE, maxim 4.1 ("entropy-based measures to estimate reliability"), which gives no formula; this is ours.

    >>> reliability_weights([[1.0, 0.0], [0.5, 0.5]]).tolist()
    [1.0, 0.0]
    """
    known = known_rows(rows)
    if known.ndim < 2:
        raise ValueError(f"several distributions have the shape (..., m, k), not {known.shape}")
    most = np.log(known.shape[-1]) if known.shape[-1] > 1 else 1.0
    certain = 1.0 - scipy.special.entr(known).sum(axis=-1) / most
    if known.shape[-1] == 1:
        certain *= 0.0
    reliability = np.where(certain < _NONE, 0.0, certain)
    says_nothing = (reliability == 0.0).all(axis=-1, keepdims=True)
    return row_weights(known, np.where(says_nothing, 1.0, reliability))


def mixture(rows: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    """The weighted mean of distributions, `sum w_i p_i / sum w_i`.

    Its Kullback-Leibler divergence from any truth is at most the weighted mean of theirs, hence at most the WORST of
    theirs, in every case; nothing promises that it is below the best.

    Args:
        rows: `(..., m, k)`, distributions.
        weights: `(..., m)`, at least 0 and not all 0; divided by their sum. Equal when None.

    Returns:
        `(..., k)`, distributions; all NaN when a row is no distribution, or a weight is NaN or negative, or all are 0.

    Raises:
        ValueError: if `rows` has fewer than two axes, or the shapes do not fit.

    >>> mixture([[1.0, 0.0], [0.5, 0.5]], [1.0, 3.0]).tolist()
    [0.625, 0.375]
    """
    known = known_rows(rows)
    mixed: Floats = (row_weights(known, weights)[..., None] * known).sum(axis=-2)
    return mixed


def information_gain(before: npt.ArrayLike, after: npt.ArrayLike) -> Values:
    """The fall in entropy, `H(before) - H(after)`, in nats: above 0 when the later distribution is the surer.

    Args:
        before, after: `(..., k)`, distributions, such as the mixtures of two rounds.

    Returns:
        `(...)`, in [-ln k, ln k] nats; NaN for what is no distribution.

    Raises:
        ValueError: if the shapes do not broadcast.

    Source: EVINCE, "information gain (entropy reduction of a reliability-weighted mixture)".

    >>> round(information_gain([0.5, 0.5], [1.0, 0.0]), 4)
    0.6931
    """
    return values(np.asarray(entropy(before)) - np.asarray(entropy(after)))
