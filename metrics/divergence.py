"""Entropy, divergences, mutual information and mixtures of distributions over labels.

Labels are mere names: permuting them changes nothing. p and q are distributions, `(..., k)` arrays that broadcast;
results are `(...)`, or a plain float for `(k,)`, in nats. A row that is no distribution (NaN,
negative, a sum that is not 1 within 1e-6) gives NaN; one that is, is divided by its sum first. Several distributions
are `(..., m, k)`, their weights `(..., m)`, at least 0 and not all 0, divided by their sum, equal when None. Functions
raise ValueError for shapes that do not fit, and an epsilon that is not above 0.

Two marginals alone do not determine a mutual information; in the coupling used here both give the same label as
often as their distributions allow, and independent ones otherwise. The result is printed and never steers a debate:
under this coupling it FALLS as a consensus sharpens (.6, .35, .05 twice gives .824 nats, .9, .05, .05 twice .394),
because identical distributions share all their entropy and sharp ones have little.
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
    """Cross-entropy, `CE(p, q) = -sum p log q = H(p) + KL(p, q)`; `H(p)` when both are equal.

    Returns:
        `(...)`, in [0, inf]; infinite without `epsilon` where q is 0 and p is not.

    >>> round(cross_entropy([0.5, 0.5], [0.25, 0.75]) / math.log(2), 12)
    1.207518749639
    """
    first, second = known_pairs(p, q)
    result = -row_sums(scipy.special.xlogy(first, _smoothed(second, epsilon)))
    return values(np.maximum(result, 0.0))


def kl_divergence(p: npt.ArrayLike, q: npt.ArrayLike, *, epsilon: float | None = None) -> Values:
    """Kullback-Leibler divergence, `KL(p, q) = sum p log(p / q)`; not symmetric, no metric.

    Args:
        p: `(..., k)`, the distribution that the mean is taken over (such as the truth).
        q: `(..., k)`, the distribution that is judged.
        epsilon: None, or a number above 0: then `(q + epsilon) / (1 + k epsilon)` replaces q, in every row and not
            only where q has a 0, so that `KL(p, p)` is a little above 0. `floored` marks the rows that needed it: count
            those, because their value is made of epsilon, about `p log(1 / epsilon)`.

    Returns:
        `(...)`, in [0, inf]; infinite without `epsilon` where q is 0 and p is not.

    Source: Kullback and Leibler, "On information and sufficiency", 1951.

    >>> kl_divergence([0.0, 1.0], [0.5, 0.5]) / math.log(2), kl_divergence([0.5, 0.5], [0.0, 1.0])
    (1.0, inf)
    """
    first, second = known_pairs(p, q)
    result = row_sums(scipy.special.rel_entr(first, _smoothed(second, epsilon)))
    return values(np.maximum(result, 0.0))


def floored(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Whether KL divergence needs smoothing: `KL(p, q)` is infinite where some label has q = 0 and p > 0.

    Returns:
        `(...)`, booleans (a plain one for `(k,)`); False for what is no distribution: its divergence is unknown.

    >>> floored([[1.0, 0.0], [0.5, 0.5]], [1.0, 0.0]).tolist()
    [False, True]
    """
    first, second = known_pairs(p, q)
    result = ((first > 0.0) & (second == 0.0)).any(axis=-1)
    return result if np.ndim(result) else bool(result)


def jensen_shannon_divergence(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Jensen-Shannon divergence, `JSD = KL(p, m) / 2 + KL(q, m) / 2` with `m = (p + q) / 2`.

    It needs no smoothing. Its square root is a metric (and is what scipy gives under that name); it is none itself.

    Returns:
        `(...)`, in [0, ln 2] nats, which is [0, 1] bit: 0 for equal distributions, ln 2 for disjoint ones, and
        symmetric.

    Source: Lin, "Divergence measures based on the Shannon entropy", 1991; EVINCE, appendix 7.A.

    >>> jensen_shannon_divergence([1.0, 0.0], [0.0, 1.0]) / math.log(2)
    1.0
    """
    first, second = known_pairs(p, q)
    both = first + second  # twice the mean: halving would take the smallest numbers to 0
    result = (_from_twice_the_mean(first, both) + _from_twice_the_mean(second, both)) / 2.0
    return values(np.clip(result, 0.0, math.log(2.0)))


def generalised_jensen_shannon(rows: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Values:
    """Generalised Jensen-Shannon divergence of m distributions, `sum w_i KL(p_i, sum w_j p_j)`.

    Returns:
        `(...)`, from 0 (all equal) to the entropy of the weights (all disjoint), which is log m when they are equal;
        with two rows and no weights `jensen_shannon_divergence`. NaN when a row is no distribution, or a weight is
        NaN or negative, or all are 0.

    Source: Lin, 1991, section V.

    >>> generalised_jensen_shannon([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]) / math.log(2)
    2.0
    """
    known = known_rows(rows)
    share = row_weights(known, weights)
    mean = (share[..., None] * known).sum(axis=-2, keepdims=True)
    # Where the mean is rounded to 0, so is each row's part in it.
    parts = scipy.special.rel_entr(np.where(mean > 0.0, known, 0.0), mean).sum(axis=-1)
    result = (share * parts).sum(axis=-1)
    return values(np.clip(result, 0.0, scipy.special.entr(share).sum(axis=-1)))


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Total variation distance, `TV = sum |p - q| / 2`: the mass that would have to move.

    Returns:
        `(...)`, a share in [0, 1]: 0 for equal, 1 for disjoint distributions; a metric.

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


def mutual_information(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Mutual information under the maximal coupling, `sum J log(J / (p q'))`.

    The joint is not built. With `m = min(p, q)`, `a = p - m`, `b = q - m` and `T = sum a` no label has both a and b, so
    `MI = -sum m log max(p, q) + sum a log(a / p) + sum b log(b / q) - T log T`.

    Returns:
        `(...)`, from 0 (disjoint) to the smaller entropy of the two (reached when they are equal); symmetric.

    Source: the formula is that of EVINCE, appendix 7.A; the coupling is moot's own, the source names none.

    >>> mutual_information([0.5, 0.5], [0.5, 0.5]) / math.log(2)
    1.0
    """
    first, second = known_pairs(p, q)
    return values(_mutual_information_nat(first, second))


def normalised_mutual_information(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Normalised mutual information under the maximal coupling, `MI / max(H(p), H(q))`.

    Returns:
        `(...)`, in [0, 1]: 1 for equal distributions, two equal point masses included; 0 for disjoint ones, two
        different point masses included (as for all that are close to them).

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
    """MI in nats, from not_none rows."""
    common, rest_p, rest_q = _split(p, q)
    moved = (row_sums(rest_p) + row_sums(rest_q)) / 2.0  # averaged: rounding must not break the symmetry
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


_NONE = 1e-12  # reliability of this size is rounding: the entropy of a uniform distribution is log k only nearly


def reliability_weights(rows: npt.ArrayLike) -> Floats:
    """Entropy-based reliability weights, `w_i = r_i / sum r_j` with `r_i = 1 - H(p_i) / ln k`.

    Certain is not correct: a model that is certain and wrong gets the whole weight of one that is uncertain.

    Args:
        rows: `(..., m, k)`, distributions. Every column counts as a class in k, with or without mass:
            a column for what is outside the labels does, too.

    Returns:
        `(..., m)`, shares that sum to 1: equal when no row has information (all uniform, or k = 1), and 0 for a uniform
        row when another is not. All NaN when one row is no distribution: leave such a row out first.

    Source: EVINCE, maxim 4.1 ("entropy-based measures to estimate reliability"), which gives no formula.

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
    """Mixture (weighted mean) of distributions, `sum w_i p_i / sum w_i`.

    Its Kullback-Leibler divergence from any truth is at most the weighted mean of theirs, hence at most the WORST of
    theirs, in every case; nothing promises that it is below the best.

    Returns:
        `(..., k)`, distributions; all NaN when a row is no distribution, or a weight is NaN or negative, or all are 0.

    >>> mixture([[1.0, 0.0], [0.5, 0.5]], [1.0, 3.0]).tolist()
    [0.625, 0.375]
    """
    known = known_rows(rows)
    mixed: Floats = (row_weights(known, weights)[..., None] * known).sum(axis=-2)
    return mixed


def information_gain(before: npt.ArrayLike, after: npt.ArrayLike) -> Values:
    """Information gain, `H(before) - H(after)`, in nats: above 0 when the later distribution is more certain.

    Args:
        before, after: `(..., k)`, distributions, such as the mixtures of two rounds.

    Returns:
        `(...)`, in [-ln k, ln k] nats.

    Source: EVINCE, "information gain (entropy reduction of a reliability-weighted mixture)".

    >>> round(information_gain([0.5, 0.5], [1.0, 0.0]), 4)
    0.6931
    """
    return values(np.asarray(entropy(before)) - np.asarray(entropy(after)))
