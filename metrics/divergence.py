"""How uncertain a distribution over labels is, and how far two or more are apart when labels are mere names.

All take `(..., k)` arrays that broadcast and give `(...)`, or a plain float for `(k,)`. A row that is no distribution
(NaN, negative, a sum that is not 1 within 1e-6) gives NaN; one that is, is divided by its sum first. Permuting the
labels changes nothing here.
"""

import math

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.distribution import Floats, Unit, Values, known_pairs, known_rows, nats, row_sums, row_weights, values


def entropy(p: npt.ArrayLike, *, unit: Unit = "nat") -> Values:
    """Shannon entropy, `H(p) = -sum p log p`, with `0 log 0 = 0`.

    Args:
        p: `(..., k)`, distributions.
        unit: `nat` or `bit`.

    Returns:
        `(...)`, in [0, log k]: 0 for a point mass, log k for the uniform distribution. NaN for what is no distribution.

    Raises:
        ValueError: for a single number or an unknown unit.

    Source: Shannon, "A mathematical theory of communication", 1948.

    >>> entropy([0.5, 0.25, 0.25], unit="bit")
    1.5
    """
    return values(row_sums(scipy.special.entr(known_rows(p))) / nats(unit))


def cross_entropy(p: npt.ArrayLike, q: npt.ArrayLike, *, epsilon: float | None = None, unit: Unit = "nat") -> Values:
    """Cross-entropy, `CE(p, q) = -sum p log q = H(p) + KL(p, q)`; `H(p)` when both are equal.

    Args:
        p, q: `(..., k)`, distributions.
        epsilon: smooths q, see `kl_divergence`.
        unit: `nat` or `bit`.

    Returns:
        `(...)`, in [0, inf]; infinite without `epsilon` where q is 0 and p is not. NaN for what is no distribution.

    Raises:
        ValueError: for shapes that do not fit, an epsilon that is not positive, or an unknown unit.

    >>> cross_entropy([0.5, 0.5], [0.25, 0.75], unit="bit")
    1.207518749639422
    """
    first, second = known_pairs(p, q)
    found = -row_sums(scipy.special.xlogy(first, _smoothed(second, epsilon)))
    return values(np.maximum(found, 0.0) / nats(unit))


def kl_divergence(p: npt.ArrayLike, q: npt.ArrayLike, *, epsilon: float | None = None, unit: Unit = "nat") -> Values:
    """Kullback-Leibler divergence, `KL(p, q) = sum p log(p / q)`; not symmetric, no metric.

    Args:
        p: `(..., k)`, the distribution that the mean is taken over (the truth, say).
        q: `(..., k)`, the distribution that is judged.
        epsilon: None, or a number above 0: then `(q + epsilon) / (1 + k epsilon)` stands for q, in every row and not
            only where q has a 0, so that `KL(p, p)` is a little above 0. `floored` says which rows needed it: count
            those, because their value is made of epsilon, about `p log(1 / epsilon)`.
        unit: `nat` or `bit`.

    Returns:
        `(...)`, in [0, inf]; infinite without `epsilon` where q is 0 and p is not. NaN for what is no distribution.

    Raises:
        ValueError: for shapes that do not fit, an epsilon that is not positive, or an unknown unit.

    Source: Kullback and Leibler, "On information and sufficiency", 1951.

    >>> kl_divergence([0.0, 1.0], [0.5, 0.5], unit="bit"), kl_divergence([0.5, 0.5], [0.0, 1.0])
    (1.0, inf)
    """
    first, second = known_pairs(p, q)
    found = row_sums(scipy.special.rel_entr(first, _smoothed(second, epsilon)))
    return values(np.maximum(found, 0.0) / nats(unit))


def floored(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Whether `KL(p, q)` is infinite without smoothing: some label has q = 0 and p > 0.

    Args:
        p, q: `(..., k)`, distributions.

    Returns:
        `(...)`, booleans (a plain one for `(k,)`); False for what is no distribution: its divergence is unknown.

    Raises:
        ValueError: for shapes that do not fit.

    >>> floored([[1.0, 0.0], [0.5, 0.5]], [1.0, 0.0]).tolist()
    [False, True]
    """
    first, second = known_pairs(p, q)
    found = ((first > 0.0) & (second == 0.0)).any(axis=-1)
    return found if np.ndim(found) else bool(found)


def jensen_shannon_divergence(p: npt.ArrayLike, q: npt.ArrayLike, *, unit: Unit = "nat") -> Values:
    """Jensen-Shannon divergence, `JSD = KL(p, m) / 2 + KL(q, m) / 2` with `m = (p + q) / 2`.

    It needs no smoothing. Its square root is a metric (and is what scipy gives under that name); it is none itself.

    Args:
        p, q: `(..., k)`, distributions.
        unit: `nat` or `bit`.

    Returns:
        `(...)`, in [0, ln 2] nats, which is [0, 1] bit: 0 for equal distributions, ln 2 for disjoint ones, and
        symmetric. NaN for what is no distribution.

    Raises:
        ValueError: for shapes that do not fit, or an unknown unit.

    Source: Lin, "Divergence measures based on the Shannon entropy", 1991; EVINCE, appendix 7.A.

    >>> jensen_shannon_divergence([1.0, 0.0], [0.0, 1.0], unit="bit")
    1.0
    """
    first, second = known_pairs(p, q)
    both = first + second  # twice the mean: halving would take the smallest numbers to 0
    found = (_from_twice_the_mean(first, both) + _from_twice_the_mean(second, both)) / 2.0
    return values(np.clip(found, 0.0, math.log(2.0)) / nats(unit))


def generalised_jensen_shannon(
    rows: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, unit: Unit = "nat"
) -> Values:
    """Jensen-Shannon divergence of m distributions, `sum w_i KL(p_i, sum w_j p_j)`: how much they say of who speaks.

    Args:
        rows: `(..., m, k)`, distributions.
        weights: `(..., m)`, at least 0 and not all 0; divided by their sum. Equal when None.
        unit: `nat` or `bit`.

    Returns:
        `(...)`, from 0 (all equal) to the entropy of the weights (all disjoint), which is log m when they are equal;
        with two rows and no weights `jensen_shannon_divergence`. NaN when a row is no distribution, or a weight is
        NaN or negative, or all are 0.

    Raises:
        ValueError: if `rows` has fewer than two axes, the shapes do not fit, or the unit is unknown.

    Source: Lin, 1991, section V.

    >>> generalised_jensen_shannon([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], unit="bit")
    2.0
    """
    known = known_rows(rows)
    share = row_weights(known, weights)
    mean = (share[..., None] * known).sum(axis=-2, keepdims=True)
    # Where the mean is rounded to 0, so is each row's part in it.
    parts = scipy.special.rel_entr(np.where(mean > 0.0, known, 0.0), mean).sum(axis=-1)
    found = (share * parts).sum(axis=-1)
    return values(np.clip(found, 0.0, scipy.special.entr(share).sum(axis=-1)) / nats(unit))


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Total variation distance, `TV = sum |p - q| / 2`: the mass that would have to move.

    Args:
        p, q: `(..., k)`, distributions.

    Returns:
        `(...)`, a share in [0, 1]: 0 for equal, 1 for disjoint distributions; a metric. NaN for what is no
        distribution.

    Raises:
        ValueError: for shapes that do not fit.

    >>> total_variation([0.5, 0.5, 0.0], [0.25, 0.5, 0.25])
    0.25
    """
    first, second = known_pairs(p, q)
    return values(np.minimum(row_sums(np.abs(first - second)) / 2.0, 1.0))


def _from_twice_the_mean(p: Floats, both: Floats) -> Floats:
    """KL(p, both / 2).

    numpy's logarithm is several times faster than scipy's relative entropy, and most of the rest is fetching memory for
    results in between: all of them are written over one another.
    """
    terms = np.full(both.shape, 0.5)  # stays where p is 0: a ratio of 1, whose logarithm is 0
    np.divide(p, both, out=terms, where=p > 0.0)
    terms *= 2.0
    np.log(terms, out=terms)
    terms *= p
    return row_sums(terms)


def _smoothed(q: Floats, epsilon: float | None) -> Floats:
    """A distribution without zeros, or as it is."""
    if epsilon is None:
        return q
    if not (epsilon > 0.0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon must be above 0, not {epsilon!r}")
    smoothed: Floats = (q + epsilon) / (1.0 + q.shape[-1] * epsilon)
    return smoothed
