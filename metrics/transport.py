"""Wasserstein distance between distributions over labels, by exact optimal transport.

Labels have no order of their own, so the cost between two labels is 1 unless a matrix states another;
with that the distance is the total variation. The solver is loaded when the first matrix is given: that takes a third
of a second, and most processes need none.
"""

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats, Values, known_pairs, values
from moot.metrics.divergence import total_variation

_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # the least it takes


def wasserstein(p: npt.ArrayLike, q: npt.ArrayLike, ground: npt.ArrayLike | None = None) -> Values:
    """Wasserstein distance, `min sum J_ij d_ij` over the joint distributions J of p and q: the cheapest transport.

    Args:
        p, q: `(..., k)`, distributions.
        ground: `(k, k)`, the distance d between labels, in any unit: symmetric, 0 on the diagonal; it need not obey
            the triangle inequality. None for 1 between any two labels (then the result is the total variation and all
            pairs are computed together). `embedding_distance` makes one; never the labels' numbers by accident.

    Returns:
        `(...)`, in the unit of `ground`, from 0 (equal) to its largest entry; symmetric, and a metric when `ground` is
        one. NaN for what is no distribution. Exact up to rounding (about 1e-9 of the largest entry).

    Raises:
        ValueError: for shapes that do not fit, or a `ground` that is not square, finite, symmetric and at least 0 with
            a diagonal of 0.

    With a matrix each pair costs a linear programme.

    Source: Kantorovich, "On the translocation of masses", 1942; EVINCE, appendix 7.A (whose O(k log k) holds on a line
    only).

    >>> wasserstein([1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    1.5
    """
    if ground is None:
        return total_variation(p, q)
    first, second = known_pairs(p, q)
    distance = _checked(ground, first.shape[-1])
    first, second = np.broadcast_arrays(first, second)
    shape = first.shape[:-1]
    first, second = first.reshape(-1, first.shape[-1]), second.reshape(-1, second.shape[-1])
    found = np.where(np.isnan(first).any(axis=-1) | np.isnan(second).any(axis=-1), np.nan, 0.0)
    unit = float(distance.max(initial=0.0))
    if unit > 0.0:
        # Shared mass need not move, provided that the distances obey the triangle inequality.
        common = np.minimum(first, second) if _obeys_triangle(distance) else np.zeros_like(first)
        for row in np.flatnonzero(~np.isnan(found)):
            found[row] = _transport(first[row] - common[row], second[row] - common[row], distance / unit)
    return values(found.reshape(shape) * unit)


def embedding_distance(vectors: npt.ArrayLike) -> Floats:
    """Euclidean distances between unit vectors, `sqrt(2 (1 - cos))`.

    `1 - cos` itself breaks the triangle inequality; this is a metric.

    Args:
        vectors: `(k, d)`, one per label, finite numbers of any scale, none of them all 0.

    Returns:
        `(k, k)`, in [0, 2]: 0 for one direction, sqrt(2) for orthogonal vectors, 2 for opposite ones.

    Raises:
        ValueError: for another shape, or a vector that has no direction (all 0, NaN or infinite).

    >>> embedding_distance([[1.0, 0.0], [-3.0, 0.0]]).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"vectors have the shape (k, d), not {rows.shape}")
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    lost = np.flatnonzero(~(np.isfinite(largest) & (largest > 0.0))[:, 0])
    if lost.size:
        raise ValueError(f"vector {lost[0]} has no direction: it is 0, NaN or infinite")
    rows = rows / largest  # first, because squares of very large or small entries leave the range
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    from scipy.spatial.distance import pdist, squareform

    return np.minimum(squareform(pdist(rows)), 2.0) if len(rows) > 1 else np.zeros((len(rows), len(rows)))


def _checked(ground: npt.ArrayLike, k: int) -> Floats:
    """The matrix of distances between k labels, validated."""
    distance = np.asarray(ground, dtype=np.float64)
    if distance.shape != (k, k):
        raise ValueError(f"ground distances of shape {distance.shape} for {k} labels: ({k}, {k}) expected")
    if not np.isfinite(distance).all() or (distance < 0.0).any():
        raise ValueError("a ground distance is negative, NaN or infinite")
    if np.diagonal(distance).any():
        raise ValueError("the ground distance of a label to itself is not 0")
    if not np.allclose(distance, distance.T, rtol=1e-9, atol=0.0):
        raise ValueError("ground distances are not symmetric")
    return distance


def _obeys_triangle(distance: Floats) -> bool:
    """Whether the distances obey the triangle inequality, up to rounding."""
    slack = 1e-12 * float(distance.max())
    return all((distance <= distance[:, [z]] + distance[[z], :] + slack).all() for z in range(len(distance)))


def _transport(supply: Floats, demand: Floats, distance: Floats) -> float:
    """The optimal transport plan from `supply` to `demand`, both `(k,)` and of equal mass."""
    from_, to = np.flatnonzero(supply), np.flatnonzero(demand)
    mass = float(supply.sum())
    if not from_.size or not to.size:
        return 0.0
    share, wish = supply[from_] / mass, demand[to] / demand.sum()
    cost = distance[np.ix_(from_, to)]
    if min(cost.shape) == 1:  # there is only one plan
        return mass * float(share @ cost @ wish)

    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    a, b = cost.shape
    sums = [kron(eye_array(a), np.ones((1, b))), kron(np.ones((1, a)), eye_array(b - 1, b))]
    # The last demand follows from the others: to ask for it again is to ask for equal sums to the last digit.
    wanted = np.concatenate([share, wish[:-1]])
    solved = linprog(cost.ravel(), A_eq=vstack(sums), b_eq=wanted, method="highs-ds", options=_TOLERANCES)
    if solved.x is None:
        raise ArithmeticError(f"optimal transport was not solved: {solved.message}")
    return mass * max(0.0, float(solved.x @ cost.ravel()))
