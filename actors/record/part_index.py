"""Where a case's rows lie in committed parts, so that looking for some cases does not read all of a large record.

Parts never change once they are committed, so each is looked through once, and only for its case ids.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import numpy.typing as npt

from moot.actors.record.parts import opened

Groups = Callable[[Path], list[int]]
"""Which row groups of a part's file may hold what is looked for, rising."""


class PartIndex:
    """The row groups of Parquet files by case, in 12 bytes for each case in a group. Several threads may use it."""

    def __init__(self) -> None:
        self._files: dict[Path, tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]] = {}
        self._looking = threading.Lock()

    def groups_of(self, case_ids: Collection[str]) -> Groups:
        """Where rows of these cases may lie. A file that has not been asked about before is looked through then."""
        wanted = _hashes(sorted(set(case_ids)))

        def groups(file: Path) -> list[int]:
            hashes, numbers = self._of(file)
            first, end = np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right")
            found = {int(number) for i in np.flatnonzero(end > first) for number in numbers[first[i] : end[i]]}
            return sorted(found)

        return groups

    def _of(self, file: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        with self._looking:
            known = self._files.get(file)
            if known is None:
                known = self._files[file] = _look_through(file)
            return known


def _look_through(file: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The hashes of the case ids in a file, rising, and for each the row group that it is in."""
    hashes, numbers = [], []
    with opened(file, read_dictionary=["case_id"]) as part:
        for number in range(part.num_row_groups):
            case_ids = part.read_row_group(number, columns=["case_id"])["case_id"].unique().to_pylist()
            hashes.append(_hashes(case_ids))
            numbers.append(np.full(len(case_ids), number, np.int32))
    if not hashes:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    all_hashes = np.concatenate(hashes)
    order = np.argsort(all_hashes, kind="stable")
    return all_hashes[order], np.concatenate(numbers)[order]


def _hashes(case_ids: Collection[str]) -> npt.NDArray[np.int64]:
    """Of this process: two cases with one hash cost a reading too much, and no more."""
    return np.fromiter(map(hash, case_ids), np.int64, len(case_ids))
