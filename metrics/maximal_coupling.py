"""Mutual information of two distributions that come without a joint one: under their maximal coupling.

Two marginals have no mutual information of their own. The coupling used here lets both sides say the same label as
often as their distributions allow, and independent ones otherwise. What comes out is printed and never steers a debate:
under this coupling it FALLS as a consensus sharpens (.6, .35, .05 twice gives .824 nats, .9, .05, .05 twice .394),
because identical distributions share all their entropy and sharp ones have little.
"""

import numpy as np
import numpy.typing as npt
import scipy

from moot.metrics.distribution import Floats, Unit, Values, known_pairs, nats, row_sums, values


def maximal_coupling(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """The joint distribution in which both are equal as often as possible.

    With `m = min(p, q)` and `T = TV(p, q)` it is `diag(m) + (p - m)(q - m)' / T`: mass stays where both agree, the
    rest is independent.

    Args:
        p, q: `(..., k)`, distributions.

    Returns:
        `(..., k, k)`, with p as the sums over the last axis and q over the one before; the diagonal sums to `1 - T`.
        NaN where p or q is no distribution.

    Raises:
        ValueError: for shapes that do not fit.

    Source: Lindvall, Lectures on the Coupling Method, 1992, section I.5.

    >>> maximal_coupling([0.75, 0.25], [0.25, 0.75]).tolist()
    [[0.25, 0.5], [0.0, 0.25]]
    """
    first, second = known_pairs(p, q)
    common, rest_p, rest_q = _split(first, second)
    moved = rest_p.sum(axis=-1)[..., None, None]
    product = rest_p[..., :, None] * rest_q[..., None, :]
    apart = np.divide(product, moved, out=np.zeros_like(product), where=moved != 0.0)
    joint: Floats = apart + common[..., :, None] * np.eye(first.shape[-1])
    return joint


def mutual_information(p: npt.ArrayLike, q: npt.ArrayLike, *, unit: Unit = "nat") -> Values:
    """Mutual information under the maximal coupling, `sum J log(J / (p q'))`.

    The joint is not built. With `m = min(p, q)`, `a = p - m`, `b = q - m` and `T = sum a` no label has both a and b, so
    `MI = -sum m log max(p, q) + sum a log(a / p) + sum b log(b / q) - T log T`.

    It is printed, and never steers: among equal distributions it is their entropy, and so falls as they sharpen.

    Args:
        p, q: `(..., k)`, distributions.
        unit: `nat` or `bit`.

    Returns:
        `(...)`, from 0 (disjoint) to the smaller entropy of the two (reached when they are equal); symmetric. NaN for
        what is no distribution.

    Raises:
        ValueError: for shapes that do not fit, or an unknown unit.

    Source: the formula is that of EVINCE, appendix 7.A; the coupling is ours, the source names none.

    >>> mutual_information([0.5, 0.5], [0.5, 0.5], unit="bit")
    1.0
    """
    first, second = known_pairs(p, q)
    return values(_mutual_information_nat(first, second) / nats(unit))


def normalised_mutual_information(p: npt.ArrayLike, q: npt.ArrayLike) -> Values:
    """Mutual information under the maximal coupling over the larger entropy, `MI / max(H(p), H(q))`.

    Printed, and never steers: see `mutual_information`.

    Args:
        p, q: `(..., k)`, distributions.

    Returns:
        `(...)`, in [0, 1]: 1 for equal distributions, two equal point masses included; 0 for disjoint ones, two
        different point masses included (as for all that are close to them). NaN for what is no distribution.

    Raises:
        ValueError: for shapes that do not fit.

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
    """MI in nats, from known rows."""
    common, rest_p, rest_q = _split(p, q)
    moved = (row_sums(rest_p) + row_sums(rest_q)) / 2.0  # equal but for rounding, which must not tell p from q
    parts = (
        scipy.special.rel_entr(rest_p, p)
        + scipy.special.rel_entr(rest_q, q)
        - scipy.special.xlogy(common, np.maximum(p, q))
    )
    most = np.minimum(row_sums(scipy.special.entr(p)), row_sums(scipy.special.entr(q)))
    found: Floats = np.clip(row_sums(parts) - scipy.special.xlogy(moved, moved), 0.0, most)
    return found


def _split(p: Floats, q: Floats) -> tuple[Floats, Floats, Floats]:
    """What both have, and what each has beyond it."""
    common = np.minimum(p, q)
    return common, p - common, q - common
