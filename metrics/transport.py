"""Wasserstein distance between distributions over labels, by exact optimal transport.

Labels have no order: the cost between two labels is 1 unless a matrix states another. With unit costs the distance is
the total variation. The solver is imported with the first matrix, because that takes a third of a second.
"""

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats, Values, known_pairs, values
from moot.metrics.divergence import total_variation

_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # the solver's minimum


def wasserstein(p: npt.ArrayLike, q: npt.ArrayLike, ground: npt.ArrayLike | None = None) -> Values:
    """Wasserstein distance, `min sum J_ij d_ij` over the joint distributions J with marginals p and q.

    Args:
        p, q: `(..., k)`, distributions.
        ground: `(k, k)`, distances d between labels, in any unit: symmetric, 0 on the diagonal; the triangle inequality
            is not required. None for 1 between any two labels; the result is then the total variation, computed for all
            pairs at once. `embedding_distance` computes such a matrix.

    Returns:
        `(...)`, in the unit of `ground`, from 0 (equal) to its largest entry; symmetric, and a metric if `ground` is
        one. NaN if p or q is not a distribution. Exact up to rounding (about 1e-9 of the largest entry).

    Raises:
        ValueError: for incompatible shapes, or a `ground` that is not square, finite, symmetric and non-negative with a
            diagonal of 0.

    With a matrix, each pair is one linear programme.

    Source: Kantorovich, "On the translocation of masses", 1942; EVINCE, appendix 7.A (its O(k log k) applies to labels
    on a line only).

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
    result = np.where(np.isnan(first).any(axis=-1) | np.isnan(second).any(axis=-1), np.nan, 0.0)
    unit = float(distance.max(initial=0.0))
    if unit > 0.0:
        # Common mass need not move if the triangle inequality applies.
        common = np.minimum(first, second) if _obeys_triangle(distance) else np.zeros_like(first)
        for row in np.flatnonzero(~np.isnan(result)):
            result[row] = _transport(first[row] - common[row], second[row] - common[row], distance / unit)
    return values(result.reshape(shape) * unit)


def embedding_distance(vectors: npt.ArrayLike) -> Floats:
    """Euclidean distances between unit vectors, `sqrt(2 (1 - cos))`.

    Unlike `1 - cos`, it is a metric.

    Args:
        vectors: `(k, d)`, one per label, finite and of any scale, not all 0.

    Returns:
        `(k, k)`, in [0, 2]: 0 for equal directions, sqrt(2) for orthogonal vectors, 2 for opposite ones.

    Raises:
        ValueError: for another shape, or a vector without direction (all 0, NaN or infinite).

    >>> embedding_distance([[1.0, 0.0], [-3.0, 0.0]]).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"vectors must have the shape (k, d), not {rows.shape}")
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    undirected = np.flatnonzero(~(np.isfinite(largest) & (largest > 0.0))[:, 0])
    if undirected.size:
        raise ValueError(f"vector {undirected[0]} has no direction: it is 0, NaN or infinite")
    rows = rows / largest  # first, because squares of very large or small entries overflow or underflow
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    from scipy.spatial.distance import pdist, squareform

    return np.minimum(squareform(pdist(rows)), 2.0) if len(rows) > 1 else np.zeros((len(rows), len(rows)))


def _checked(ground: npt.ArrayLike, k: int) -> Floats:
    """Validated matrix of distances between k labels."""
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
    """Cost of the optimal transport plan from `supply` to `demand`, both `(k,)` and of equal mass."""
    from_, to = np.flatnonzero(supply), np.flatnonzero(demand)
    mass = float(supply.sum())
    if not from_.size or not to.size:
        return 0.0
    supplied, demanded = supply[from_] / mass, demand[to] / demand.sum()
    cost = distance[np.ix_(from_, to)]
    if min(cost.shape) == 1:  # only one plan exists
        return mass * float(supplied @ cost @ demanded)

    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    a, b = cost.shape
    sums = [kron(eye_array(a), np.ones((1, b))), kron(np.ones((1, a)), eye_array(b - 1, b))]
    # The last constraint is redundant, and rounding could make it infeasible.
    marginals = np.concatenate([supplied, demanded[:-1]])
    solved = linprog(cost.ravel(), A_eq=vstack(sums), b_eq=marginals, method="highs-ds", options=_TOLERANCES)
    if solved.x is None:
        raise ArithmeticError(f"optimal transport was not solved: {solved.message}")
    return mass * max(0.0, float(solved.x @ cost.ravel()))
