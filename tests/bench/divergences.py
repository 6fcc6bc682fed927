"""The metrics of a debate's round for many pairs of distributions: vectorised, beside a loop over scipy's functions.

    python tests/bench/divergences.py [--json FILE] [--pairs N] [--labels K] [--repeats R]

Both sides compute the same numbers, which is checked: KL both ways, JSD, total variation (which is WD with distances of
0 and 1), cross-entropy both ways, both entropies, MI and NMI. scipy has no MI under a coupling: the loop builds the
joint and takes the entropies of it. The loop runs on a tenth of the pairs. Exact transport with a matrix is reported
apart, per pair, alone and many in one call. Times are the best of the repeats, wall seconds of one thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import numpy.typing as npt
from harness import ReportRows, best, finish, options, parsed
from scipy.optimize import linprog
from scipy.spatial.distance import cityblock, jensenshannon
from scipy.stats import entropy as scipy_entropy

from moot.metrics.divergence import (
    cross_entropy,
    entropy,
    jensen_shannon_divergence,
    kl_divergence,
    mutual_information,
    normalised_mutual_information,
    total_variation,
)
from moot.metrics.transport import embedding_distance, wasserstein

Floats = npt.NDArray[np.float64]

LEAST_RATIO = 50.0
"""How many times faster than the loop."""

VECTORISED: dict[str, Callable[[Floats, Floats], Any]] = {
    "KL both ways": lambda p, q: (kl_divergence(p, q), kl_divergence(q, p)),
    "JSD": jensen_shannon_divergence,
    "TV = WD 0-1": total_variation,
    "CE both ways": lambda p, q: (cross_entropy(p, q), cross_entropy(q, p)),
    "entropies": lambda p, q: (entropy(p), entropy(q)),
    "MI": mutual_information,
    "NMI": normalised_mutual_information,
}


def scipy_mutual_information(p: Floats, q: Floats) -> float:
    """Of the maximal coupling, by its entropy."""
    common = np.minimum(p, q)
    moved = float((p - common).sum())
    joint = np.diag(common) + (np.outer(p - common, q - common) / moved if moved else 0.0)
    return float(scipy_entropy(p) + scipy_entropy(q) - scipy_entropy(joint.ravel()))


ONE_BY_ONE: dict[str, Callable[[Floats, Floats], Any]] = {
    "KL both ways": lambda p, q: (scipy_entropy(p, q), scipy_entropy(q, p)),
    "JSD": lambda p, q: jensenshannon(p, q) ** 2,
    "TV = WD 0-1": lambda p, q: cityblock(p, q) / 2,
    "CE both ways": lambda p, q: (
        scipy_entropy(p) + scipy_entropy(p, q),
        scipy_entropy(q) + scipy_entropy(q, p),
    ),
    "entropies": lambda p, q: (scipy_entropy(p), scipy_entropy(q)),
    "MI": scipy_mutual_information,
    "NMI": lambda p, q: scipy_mutual_information(p, q) / max(scipy_entropy(p), scipy_entropy(q)),
}


def loop(measure: Callable[[Floats, Floats], Any], p: Floats, q: Floats) -> list[Any]:
    """A measure, pair after pair."""
    return [measure(a, b) for a, b in zip(p, q, strict=True)]


def compare(p: Floats, q: Floats, repeats: int) -> ReportRows:
    """Microseconds per pair of each measure both ways, after a check that the numbers are the same."""
    rows = ReportRows()

    def add(metric: str, vectorised_us: float, scipy_loop_us: float) -> None:
        ratio = scipy_loop_us / vectorised_us
        figures = {"metric": metric, "vectorised_us": vectorised_us, "scipy_loop_us": scipy_loop_us}
        rows.add(figures | {"ratio": ratio, "ok": ratio >= LEAST_RATIO})

    few = max(1, len(p) // 10)
    for name, vectorised in VECTORISED.items():
        one = ONE_BY_ONE[name]
        ours, theirs = np.asarray(vectorised(p[:few], q[:few])), np.array(loop(one, p[:few], q[:few]))
        np.testing.assert_allclose(ours, theirs.T, rtol=1e-7, atol=1e-10)
        ours_s = best(lambda: vectorised(p, q), repeats * 3)  # noqa: B023
        theirs_s = best(lambda: loop(one, p[:few], q[:few]), repeats)  # noqa: B023
        add(name, ours_s / len(p) * 1e6, theirs_s / few * 1e6)
    add("a whole round", *(sum(row[way] for row in rows) for way in ("vectorised_us", "scipy_loop_us")))
    return rows


def dense_transport(p: Floats, q: Floats, ground: Floats) -> float:
    """The textbook linear programme, dense."""
    k = len(p)
    sums = np.vstack([np.kron(np.eye(k), np.ones(k)), np.kron(np.ones(k), np.eye(k))])
    return float(linprog(ground.ravel(), A_eq=sums[:-1], b_eq=np.concatenate([p, q])[:-1], method="highs").fun)


def transport(repeats: int) -> ReportRows:
    """Milliseconds per pair of exact transport with a matrix."""
    random = np.random.default_rng(2)
    rows = ReportRows()
    for labels, pairs in ((5, 1000), (10, 1000), (50, 30), (200, 3)):
        ground = embedding_distance(random.normal(size=(labels, 8)))
        p, q = random.dirichlet(np.ones(labels), size=(2, pairs))
        together = best(lambda: wasserstein(p, q, ground), repeats) / pairs  # noqa: B023
        alone = best(lambda: wasserstein(p[0], q[0], ground), repeats * 3)  # noqa: B023
        dense = best(lambda: dense_transport(p[0], q[0], ground), repeats) if labels <= 50 else None  # noqa: B023
        rows.add(
            {
                "labels": labels,
                "pairs": pairs,
                "together_ms": together * 1e3,
                "alone_ms": alone * 1e3,
                "dense_ms": None if dense is None else dense * 1e3,
            }
        )
    return rows


def main() -> int:
    """Run the bench; 1 when a measure is less than `LEAST_RATIO` times faster."""
    parser = options(__doc__)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=7)
    given = parsed(parser)
    p, q = np.random.default_rng(1).dirichlet(np.ones(given.labels), size=(2, given.pairs))
    return finish(given, rows=compare(p, q, given.repeats), transport=transport(given.repeats))


if __name__ == "__main__":
    sys.exit(main())
