"""Folds for cross-validation that keep the rows of a group together."""

import numpy as np
import numpy.typing as npt

from moot.metrics.pairwise_complete import Numbers, as_codes


def grouped_folds(groups: npt.ArrayLike, folds: int, seed: int = 0) -> Numbers:
    """The fold of each row: the groups in random order, dealt out one after another.

    Args:
        groups: `(n,)`, of any sortable type.
        folds: how many, at least 2.
        seed: of the order.

    Returns:
        `(n,)`, 0 to `folds - 1`; the numbers of groups in two folds differ by one at most.

    Raises:
        ValueError: for fewer than 2 folds, or fewer groups than folds.

    >>> folds = grouped_folds(["a", "a", "b", "c", "d"], 2)
    >>> int(folds[0] - folds[1]), np.bincount(folds[1:]).tolist()
    (0, [2, 2])
    """
    codes = as_codes(groups, np.size(np.asarray(groups)))
    number = int(codes.max()) + 1 if len(codes) else 0
    if folds < 2:
        raise ValueError(f"at least two folds, not {folds}")
    if number < folds:
        raise ValueError(f"{number} groups cannot be dealt to {folds} folds")
    fold_of_group = np.empty(number, dtype=np.intp)
    fold_of_group[np.random.default_rng(seed).permutation(number)] = np.arange(number) % folds
    return fold_of_group[codes]


def balanced_folds(groups: npt.ArrayLike, outcome: npt.ArrayLike, folds: int, seed: int = 0) -> Numbers:
    """The fold of each row, such that every fold has about the same share of ones.

    The groups, in random order and then by their share of ones, are dealt out one after another. So a training part
    lacks an outcome only if fewer than two groups have it, and its share of ones hardly tells which fold was left out.

    Args:
        groups: `(n,)`, of any sortable type.
        outcome: `(n,)`, of 0 and 1.
        folds, seed: as for `grouped_folds`.

    Returns:
        `(n,)`, 0 to `folds - 1`; the numbers of groups in two folds differ by one at most.

    Raises:
        ValueError: for shapes that do not fit, fewer than 2 folds, or fewer groups than folds.

    >>> balanced_folds(["a", "a", "b", "c", "d"], [1, 1, 1, 0, 0], 2)[[0, 2]].tolist() in ([0, 1], [1, 0])
    True
    """
    ones = np.asarray(outcome, dtype=np.float64)
    codes = as_codes(groups, len(ones))
    number = int(codes.max()) + 1 if len(codes) else 0
    if folds < 2:
        raise ValueError(f"at least two folds, not {folds}")
    if number < folds:
        raise ValueError(f"{number} groups cannot be dealt to {folds} folds")
    share = np.bincount(codes, ones) / np.bincount(codes)
    drawn = np.random.default_rng(seed).permutation(number)
    fold_of_group = np.empty(number, dtype=np.intp)
    fold_of_group[drawn[np.argsort(share[drawn], kind="stable")]] = np.arange(number) % folds
    return fold_of_group[codes]
