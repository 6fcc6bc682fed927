"""Verdicts that figures are over, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from moot.deploy.results.figures.claims import trained_on
from moot.deploy.results.frames import Frames
from moot.deploy.results.record import RunRecord, VerdictRow, once_per_record
from moot.metrics.distribution import Floats

_COLUMNS = ["case_id", "attempt", "answer", "how", "rounds", "gold", "correct", "debated", "group_name"]

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Verdicts:
    """Verdicts in order of case id, one for each case.

    Attributes:
        table: columns `case_id`, `attempt`, `answer`, `how`, `rounds`, `gold`, `correct`, `debated`, `group_name`.
    """

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def where(self, some: Flags) -> Verdicts:
        """Those of a mask."""
        return Verdicts(self.table.filter(pa.array(some)))

    @cached_property
    def correct(self) -> Floats:
        """1 for a right answer, 0 for a wrong one, NaN where it cannot be scored."""
        return np.asarray(self.table["correct"].cast(pa.float64()).to_numpy(), np.float64)

    @cached_property
    def groups(self) -> Ints:
        """Number of each case's group of dependent cases; independent cases have different ones."""
        names = pc.coalesce(self.table["group_name"], self.table["case_id"]).combine_chunks()
        return np.asarray(names.dictionary_encode().indices.to_numpy(zero_copy_only=False), np.int64)

    @cached_property
    def debated(self) -> Flags:
        """Whether each was debated."""
        return self.flags(pc.fill_null(self.table["debated"], False))

    @cached_property
    def skipped(self) -> Flags:
        """Whether a gate skipped each debate."""
        return self.flags(pc.fill_null(pc.equal(self.table["how"], "skipped"), False))

    @cached_property
    def answered(self) -> Flags:
        """Whether each has an answer."""
        return self.flags(self.table["answer"].is_valid())

    @staticmethod
    def flags(column: Any) -> Flags:
        """Arrow column of truth values without nulls as an array."""
        return np.asarray(column.to_numpy(), np.bool_)


@once_per_record
def finished(run: Frames) -> Verdicts:
    """Verdict of each case that did not fail."""
    return Verdicts(run.table("verdicts", _COLUMNS, "finished").sort_by("case_id"))


@once_per_record
def counted(run: Frames) -> Verdicts:
    """Verdicts that accuracies are over: of `finished`, without the cases that the run's classifier was trained on."""
    found, left_out = finished(run), trained_on(run)
    if not left_out:
        return found
    ids = pa.array(sorted(left_out), pa.string())
    return found.where(Verdicts.flags(pc.invert(pc.is_in(found.table["case_id"], value_set=ids))))


@once_per_record
def counted_verdicts(record: RunRecord) -> list[VerdictRow]:
    """Verdicts that accuracies are over: not failed, and of no case of `trained_on`."""
    left_out = trained_on(record)
    return [each for each in record.verdicts if not each.failed and each.case_id not in left_out]
