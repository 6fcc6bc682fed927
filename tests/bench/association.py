"""The sweep of features against targets: associations, resamples and permutations on made-up replies.

    python tests/bench/association.py [--json FILE] [--rows N] [--features F] [--targets T]

20,000 replies in clusters of 1 to 12, 304 features of which each set of sixteen misses its own replies (short ones) and
a quarter has half of its values tied, 5 targets of three levels. Wall and CPU seconds of one run each, and the peak of
the process's memory after it.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rig import machine

from moot.metrics.class_separation import auroc_matrix
from moot.metrics.cluster_bootstrap import cluster_weights, resampled_auroc, resampled_spearman
from moot.metrics.cluster_permutation import permutation_test
from moot.metrics.held_out import held_out_selection
from moot.metrics.rank_correlation import kendall_matrix, partial_spearman, spearman_matrix

Floats = npt.NDArray[np.float64]

RESAMPLES, PERMUTATIONS = 200, 1000


def made_up(rows: int, features: int, targets: int) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Features, scores of 1 to 3, clusters."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, features))
    x[:, ::4] = np.minimum(x[:, ::4], 0.0)
    for first in range(0, features, 16):
        x[random.random(rows) < 0.5 * first / features, first : first + 16] = np.nan
    clusters = np.repeat(np.arange(rows), random.integers(1, 13, rows))[:rows]
    return x, random.integers(1, 4, (rows, targets)).astype(np.float64), clusters


def measured(name: str, work: Callable[[], Any]) -> dict[str, Any]:
    """Seconds and memory of one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    row = {
        "what": name,
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "peak_gib_so_far": peak,
    }
    print(f"{name:32}{row['wall_s']:8.2f} s wall{row['cpu_s']:8.2f} s CPU{peak:8.2f} GiB peak so far")
    return row


def main() -> None:
    """Prints a row for each measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=304)
    parser.add_argument("--targets", type=int, default=5)
    given = parser.parse_args()
    x, y, clusters = made_up(given.rows, given.features, given.targets)
    flags = (y < 2).astype(np.float64)
    drawn = cluster_weights(clusters, RESAMPLES)
    rows = [
        measured("Spearman", lambda: spearman_matrix(x, y)),
        measured("Kendall", lambda: kendall_matrix(x, y)),
        measured("AUROC", lambda: auroc_matrix(x, flags)),
        measured("partial Spearman", lambda: partial_spearman(x, y, x[:, 1])),
        measured("held-out selection", lambda: held_out_selection(x, y, clusters)),
        measured(f"{PERMUTATIONS} permutations", lambda: permutation_test(x, y, clusters, PERMUTATIONS)),
        measured(f"{RESAMPLES} resamples, Spearman", lambda: resampled_spearman(x, y, drawn)),
        measured(f"{RESAMPLES} resamples, AUROC", lambda: resampled_auroc(x, flags, drawn)),
    ]
    if given.json:
        given.json.write_text(
            json.dumps({"machine": machine(), "shape": [*x.shape, y.shape[1]], "measures": rows}, indent=2)
        )


if __name__ == "__main__":
    main()
