"""Wasserstein distance between distributions over labels, solved exactly as optimal transport.

Labels have no order of their own, so what it costs to go from one to another is 1 unless a matrix says otherwise;
with that the distance is the total variation. The solver is loaded when the first matrix is given: that takes a third
of a second, and most processes need none.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moot.metrics.distribution import Floats, Values, known_pairs, values
from moot.metrics.divergence import total_variation

_VARIABLES = 2000  # of one linear programme: beyond, more pairs together cost more than starting the solver again

_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # the least it takes


@dataclass(frozen=True, slots=True)
class _Shipment:
    """What one pair has to move: `supply` (a,) and `demand` (b,), each summing to 1, at `cost` (a, b) a unit."""

    row: int
    mass: float
    supply: Floats
    demand: Floats
    cost: Floats


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

    With a matrix it costs a linear programme: many pairs in one call are much cheaper than one at a time.

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
        # What both have may stay where it is, provided that no detour is cheaper than the direct way.
        common = np.minimum(first, second) if _obeys_triangle(distance) else np.zeros_like(first)
        _solve(found, first - common, second - common, distance / unit)
    return values(found.reshape(shape) * unit)


def embedding_distance(vectors: npt.ArrayLike) -> Floats:
    """Distances between directions, `sqrt(2 (1 - cos))`: the straight line between unit vectors.

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
    """The matrix of distances between k labels, or an error that says what is wrong with it."""
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
    """Whether no way over a third label is shorter, up to rounding."""
    slack = 1e-12 * float(distance.max())
    return all((distance <= distance[:, [z]] + distance[[z], :] + slack).all() for z in range(len(distance)))


def _solve(found: Floats, supply: Floats, demand: Floats, distance: Floats) -> None:
    """Put each pair's cheapest transport into `found`, which is NaN for pairs to pass over; `(n,)`, `(n, k)` twice."""
    waiting: list[_Shipment] = []
    variables = 0
    for row in np.flatnonzero(~np.isnan(found)):
        from_, to = np.flatnonzero(supply[row]), np.flatnonzero(demand[row])
        mass = float(supply[row].sum())
        if not from_.size or not to.size:
            continue
        share, wish = supply[row, from_] / mass, demand[row, to] / demand[row].sum()
        cost = distance[np.ix_(from_, to)]
        if min(cost.shape) == 1:  # there is only one way to do it
            found[row] = mass * float(share @ cost @ wish)
            continue
        waiting.append(_Shipment(int(row), mass, share, wish, cost))
        variables += cost.size
        if variables >= _VARIABLES:
            _solve_together(found, waiting)
            waiting, variables = [], 0
    if waiting:
        _solve_together(found, waiting)


def _solve_together(found: Floats, shipments: list[_Shipment]) -> None:
    """One linear programme for several independent pairs; starting the solver costs more than a small pair."""
    from scipy.optimize import linprog
    from scipy.sparse import csc_array

    rows, columns, right, cost, starts = [], [], [], [], [0]
    above = 0
    for shipment in shipments:
        a, b = shipment.cost.shape
        variable = np.arange(a * b)
        # The last demand follows from the others: to ask for it again is to ask for equal sums to the last digit.
        asked = variable % b < b - 1
        rows += [above + variable // b, above + a + (variable % b)[asked]]
        columns += [starts[-1] + variable, starts[-1] + variable[asked]]
        right += [shipment.supply, shipment.demand[:-1]]
        cost.append(shipment.cost.ravel())
        above += a + b - 1
        starts.append(starts[-1] + a * b)
    row, column, price = np.concatenate(rows), np.concatenate(columns), np.concatenate(cost)
    sums = csc_array((np.ones(len(row)), (row, column)), shape=(above, starts[-1]))
    solved = linprog(price, A_eq=sums, b_eq=np.concatenate(right), method="highs-ds", options=_TOLERANCES)
    if solved.x is None:
        raise ArithmeticError(f"optimal transport was not solved: {solved.message}")
    totals = np.add.reduceat(solved.x * price, starts[:-1])
    for shipment, total in zip(shipments, totals, strict=True):
        found[shipment.row] = shipment.mass * max(0.0, float(total))
