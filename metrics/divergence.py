"""Entropy, divergences, mutual information and mixtures of distributions over labels.

Labels have no order: permuting them changes nothing. p and q are distributions, arrays `(..., k)` that broadcast.
Results are `(...)`, or a float for `(k,)`, in nats. A row is normalised by its sum; a row that is not a distribution
(NaN, negative, or a sum that differs from 1 by more than 1e-6) gives NaN. Several distributions are `(..., m, k)`;
their weights are `(..., m)`, non-negative and not all 0, normalised by their sum, and equal if None. Functions raise
ValueError for incompatible shapes, and for an epsilon that is not above 0.

Two marginals alone do not determine a mutual information. The coupling used here is the maximal one: both give the same
label as often as their distributions allow, and are independent otherwise. Under it mutual information FALLS as a
consensus sharpens (.6, .35, .05 twice gives .824 nats, .9, .05, .05 twice .394), because identical distributions share
all their entropy, and sharp ones have little. It is only reported, and never affects a debate.
"""

import math

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.distribution import Floats, Values, known_pairs, known_rows, row_sums, row_weights, values


def entropy(p: npt.ArrayLike) -> Values:
    """Shannon entropy, `H(p) = -sum p log p`, with `0 log 0 = 0`.

    Returns:
        `(...)`, in [0, log k]: 0 for a point mass, log k for the uniform distribution.

    Source: Shannon, "A mathematical theory of communication", 1948.

    >>> entropy([0.5, 0.25, 0.25]) / math.log(2)
    1.5
    """
    return values(row_sums(scipy.special.entr(known_rows(p))))


def cross_entropy(p: npt.ArrayLike, q: npt.ArrayLike, *, epsilon: float | None = None) -> Values:
    """Cross-entropy, `CE(p, q) = -sum p log q = H(p) + KL(p, q)`; `H(p)` if p and q are equal.

    Args:
        p, q, epsilon: as for `kl_divergence`.

    Returns:
        `(...)`, in [0, inf]; infinite without `epsilon` if q is 0 where p is not.

    >>> round(cross_entropy([0.5, 0.5], [0.25, 0.75]) / math.log(2), 12)
    1.207518749639
    """
    first, second = known_pairs(p, q)
    result = -row_sums(scipy.special.xlogy(first, _smoothed(second, epsilon)))
    return values(np.maximum(result, 0.0))


def kl_divergence(p: npt.ArrayLike, q: npt.ArrayLike, *, epsilon: float | None = None) -> Values:
    """Kullback-Leibler divergence, `KL(p, q) = sum p log(p / q)`; not symmetric, not a metric.

    Args:
        p: `(..., k)`, reference distribution (such as the truth).
        q: `(..., k)`, distribution to compare with it.
        epsilon: smoothing constant above 0, or None. With it, `(q + epsilon) / (1 + k epsilon)` replaces q in every
            row, so that `KL(p, p)` is slightly above 0. If q is 0 where p is not, the value is about `p log(1 /
            epsilon)`, determined by epsilon: report how many rows `floored` marks.

    Returns:
        `(...)`, in [0, inf]; infinite without `epsilon` if q is 0 where p is not.

    Source: Kullback and Leibler, "On information and sufficiency", 1951.

    >>> kl_divergence([0.0, 1.0], [0.5, 0.5]) / math.log(2), kl_divergence([0.5, 0.5], [0.0, 1.0])
    (1.0, inf)
    """
    first, second = known_pairs(p, q)
    result = row_sums(scipy.special.rel_entr(first, _smoothed(second, epsilon)))
    return values(np.maximum(result, 0.0))


def floored(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Whether KL divergence needs smoothing: `KL(p, q)` is infinite if q is 0 where p is not.

    Returns:
        `(...)`, booleans (one bool for `(k,)`); False if p or q is not a distribution.

    >>> floored([[1.0, 0.0], [0.5, 0.5]], [1.0, 0.0]).tolist()
    [False, True]
    """
    first, second = known_pairs(p, q)
    result = ((first > 0.0) & (second == 0.0)).any(axis=-1)
    return result if np.ndim(result) else bool(result)


def jensen_shannon_divergence(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Jensen-Shannon divergence, `JSD = KL(p, m) / 2 + KL(q, m) / 2` with `m = (p + q) / 2`.

    It needs no smoothing. It is not a metric; its square root is, and is what `scipy.spatial.distance.jensenshannon`
    returns.

    Returns:
        `(...)`, symmetric, in [0, ln 2] nats, which is [0, 1] bit: 0 for equal distributions, ln 2 for disjoint ones.

    Source: Lin, "Divergence measures based on the Shannon entropy", 1991; EVINCE, appendix 7.A.

    >>> jensen_shannon_divergence([1.0, 0.0], [0.0, 1.0]) / math.log(2)
    1.0
    """
    first, second = known_pairs(p, q)
    both = first + second  # twice the mean: halving would underflow the smallest numbers
    result = (_from_twice_the_mean(first, both) + _from_twice_the_mean(second, both)) / 2.0
    return values(np.clip(result, 0.0, math.log(2.0)))


def generalised_jensen_shannon(rows: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Values:
    """Generalised Jensen-Shannon divergence of m distributions, `sum w_i KL(p_i, sum w_j p_j)`.

    Returns:
        `(...)`, from 0 (all equal) to the entropy of the weights (all disjoint), which is log m for equal weights.
        Equals `jensen_shannon_divergence` for two rows of equal weight. NaN if a row is not a distribution, a weight is
        NaN or negative, or all weights are 0.

    Source: Lin, 1991, section V.

    >>> generalised_jensen_shannon([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]) / math.log(2)
    2.0
    """
    known = known_rows(rows)
    share = row_weights(known, weights)
    mean = (share[..., None] * known).sum(axis=-2, keepdims=True)
    # Where the mean underflows to 0, so does each row's contribution.
    parts = scipy.special.rel_entr(np.where(mean > 0.0, known, 0.0), mean).sum(axis=-1)
    result = (share * parts).sum(axis=-1)
    return values(np.clip(result, 0.0, scipy.special.entr(share).sum(axis=-1)))


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Total variation distance, `TV = sum |p - q| / 2`: the mass that differs.

    Returns:
        `(...)`, in [0, 1]: 0 for equal, 1 for disjoint distributions; a metric.

    >>> total_variation([0.5, 0.5, 0.0], [0.25, 0.5, 0.25])
    0.25
    """
    first, second = known_pairs(p, q)
    return values(np.minimum(row_sums(np.abs(first - second)) / 2.0, 1.0))


def _from_twice_the_mean(p: Floats, both: Floats) -> Floats:
    """`KL(p, both / 2)`.

    Numpy's logarithm is several times faster than scipy's relative entropy, and memory access dominates the rest: all
    steps are in place.
    """
    terms = np.full(both.shape, 0.5)  # remains where p is 0: a ratio of 1 with logarithm 0
    np.divide(p, both, out=terms, where=p > 0.0)
    terms *= 2.0
    np.log(terms, out=terms)
    terms *= p
    return row_sums(terms)


def _smoothed(q: Floats, epsilon: float | None) -> Floats:
    """Additively smoothed distribution; unchanged for None."""
    if epsilon is None:
        return q
    if not (epsilon > 0.0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon must be above 0, not {epsilon!r}")
    smoothed: Floats = (q + epsilon) / (1.0 + q.shape[-1] * epsilon)
    return smoothed


def mutual_information(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Mutual information under the maximal coupling, `sum J log(J / (p q'))`.

    The joint distribution J is not computed. With `m = min(p, q)`, `a = p - m`, `b = q - m` and `T = sum a`, no label
    has both a and b above 0, so `MI = -sum m log max(p, q) + sum a log(a / p) + sum b log(b / q) - T log T`.

    Returns:
        `(...)`, symmetric, from 0 (disjoint) to the smaller of the two entropies (equal distributions).

    Source: the formula is that of EVINCE, appendix 7.A; the source names no coupling, this one is moot's.

    >>> mutual_information([0.5, 0.5], [0.5, 0.5]) / math.log(2)
    1.0
    """
    first, second = known_pairs(p, q)
    return values(_mutual_information_nat(first, second))


def normalised_mutual_information(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Normalised mutual information under the maximal coupling, `MI / max(H(p), H(q))`.

    Returns:
        `(...)`, in [0, 1]: 1 for equal distributions, including equal point masses; 0 for disjoint ones, including
        different point masses, the limit of distributions near them.

    Source: EVINCE, appendix 7.A.

    >>> normalised_mutual_information([[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1.0, 0.0]
    """
    first, second = known_pairs(p, q)
    larger = np.maximum(row_sums(scipy.special.entr(first)), row_sums(scipy.special.entr(second)))
    equal = np.where(np.isnan(larger), np.nan, (first == second).all(axis=-1))
    information = _mutual_information_nat(first, second)
    return values(np.minimum(np.divide(information, larger, out=equal, where=larger != 0.0), 1.0))


def _mutual_information_nat(p: Floats, q: Floats) -> Floats:
    """Mutual information in nats, of validated rows."""
    common, rest_p, rest_q = _split(p, q)
    moved = (row_sums(rest_p) + row_sums(rest_q)) / 2.0  # averaged, so that rounding does not break the symmetry
    parts = (
        scipy.special.rel_entr(rest_p, p)
        + scipy.special.rel_entr(rest_q, q)
        - scipy.special.xlogy(common, np.maximum(p, q))
    )
    most = np.minimum(row_sums(scipy.special.entr(p)), row_sums(scipy.special.entr(q)))
    result: Floats = np.clip(row_sums(parts) - scipy.special.xlogy(moved, moved), 0.0, most)
    return result


def _split(p: Floats, q: Floats) -> tuple[Floats, Floats, Floats]:
    """Common mass of both, and the excess of each."""
    common = np.minimum(p, q)
    return common, p - common, q - common


_ROUNDING = 1e-12  # smaller reliabilities are 0: the entropy of a uniform distribution is log k only up to rounding


def reliability_weights(rows: npt.ArrayLike) -> Floats:
    """Entropy-based reliability weights, `w_i = r_i / sum r_j` with `r_i = 1 - H(p_i) / ln k`.

    They reward certainty, not correctness: a model that is certain and wrong dominates an uncertain one.

    Args:
        rows: `(..., m, k)`, distributions. Every column counts as a class in k, with or without mass, including one for
            answers outside the labels.

    Returns:
        `(..., m)`, sum to 1: equal if no row has information (all uniform, or k = 1); 0 for a uniform row if another is
        not. All NaN if a row is not a distribution: leave such rows out first.

    Source: EVINCE, maxim 4.1 ("entropy-based measures to estimate reliability"), which gives no formula.

    >>> reliability_weights([[1.0, 0.0], [0.5, 0.5]]).tolist()
    [1.0, 0.0]
    """
    known = known_rows(rows)
    if known.ndim < 2:
        raise ValueError(f"several distributions must have the shape (..., m, k), not {known.shape}")
    most = np.log(known.shape[-1]) if known.shape[-1] > 1 else 1.0
    certain = 1.0 - scipy.special.entr(known).sum(axis=-1) / most
    if known.shape[-1] == 1:
        certain *= 0.0
    reliability = np.where(certain < _ROUNDING, 0.0, certain)
    uninformative = (reliability == 0.0).all(axis=-1, keepdims=True)
    return row_weights(known, np.where(uninformative, 1.0, reliability))


def mixture(rows: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    """Mixture (weighted mean) of distributions, `sum w_i p_i / sum w_i`.

    Its Kullback-Leibler divergence from any truth is at most the weighted mean of theirs, hence at most the WORST of
    theirs. It is not necessarily below the best.

    Returns:
        `(..., k)`, distributions; all NaN if a row is not a distribution, a weight is NaN or negative, or all weights
        are 0.

    >>> mixture([[1.0, 0.0], [0.5, 0.5]], [1.0, 3.0]).tolist()
    [0.625, 0.375]
    """
    known = known_rows(rows)
    mixed: Floats = (row_weights(known, weights)[..., None] * known).sum(axis=-2)
    return mixed


def information_gain(before: npt.ArrayLike, after: npt.ArrayLike) -> Values:
    """Information gain, `H(before) - H(after)`: positive if the later distribution is more certain.

    Args:
        before, after: `(..., k)`, distributions, such as the mixtures of two rounds.

    Returns:
        `(...)`, in [-ln k, ln k] nats.

    Source: EVINCE, "information gain (entropy reduction of a reliability-weighted mixture)".

    >>> round(information_gain([0.5, 0.5], [1.0, 0.0]), 4)
    0.6931
    """
    return values(np.asarray(entropy(before)) - np.asarray(entropy(after)))
