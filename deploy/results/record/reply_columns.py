"""Replies of a record as columns, for figures over all replies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.rows import used_nothing
from moot.deploy.results.record.rows import ReplyRow
from moot.protocols.errors import UNSENT

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class CodedTexts(NamedTuple):
    """Column of repeated texts: an index of each row in the list of distinct texts."""

    codes: Ints
    texts: list[str]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> CodedTexts:
        """Coded texts of a column without nulls."""
        encoded = column.combine_chunks().dictionary_encode()
        return cls(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist())

    def that(self, holds: Callable[[str], bool]) -> Flags:
        """Mask of the rows whose text has a property; `holds` is called once for each distinct text."""
        return np.array([holds(text) for text in self.texts], np.bool_)[self.codes]

    def counted(self, rows: Flags) -> dict[str, int]:
        """Counts of the texts among some rows, sorted by text."""
        counts = np.bincount(self.codes[rows], minlength=len(self.texts)).tolist()
        return {text: n for text, n in sorted(zip(self.texts, counts, strict=True)) if n}


class ReplyColumns:
    """Replies of a record as columns, a row for each reply.

    Args:
        table: a table with the fields of `ReplyRow` as columns.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def rows(self, some: Flags | None = None) -> list[ReplyRow]:
        """The replies as rows, or those of a mask."""
        table = self._table if some is None else self._table.filter(pa.array(some))
        columns = (table[name].to_pylist() for name in ReplyRow._fields)
        return list(map(ReplyRow._make, zip(*columns, strict=True)))

    @property
    def places(self) -> pa.Table:
        """Case id, attempt and path of each reply."""
        return self._table.select(["case_id", "attempt", "path"])

    @cached_property
    def case(self) -> CodedTexts:
        """Case id of each reply."""
        return CodedTexts.of(self._table["case_id"])

    @cached_property
    def path(self) -> CodedTexts:
        """Path of each reply."""
        return CodedTexts.of(self._table["path"])

    @cached_property
    def model(self) -> CodedTexts:
        """Model of each reply."""
        return CodedTexts.of(self._table["model"])

    @cached_property
    def outcome(self) -> CodedTexts:
        """Outcome of each reply."""
        return CodedTexts.of(self._table["outcome"])

    @cached_property
    def failure(self) -> CodedTexts:
        """Kind of failure of each reply; empty without one."""
        return CodedTexts.of(self._table["failure"])

    @cached_property
    def attempt(self) -> Ints:
        """Attempt of each reply."""
        return self.count("attempt")

    @cached_property
    def is_call(self) -> Flags:
        """Whether a model was called for each reply; see `ReplyRow.is_call`."""
        return ~self.flag("reused") & self.failure.that(lambda failure: failure != UNSENT)

    @cached_property
    def is_failed(self) -> Flags:
        """Whether the ask of each row had no usable reply."""
        return self.outcome.that(lambda outcome: outcome == "failed")

    @cached_property
    def known_tokens(self) -> Ints:
        """Known tokens of each reply, with 0 for an unknown part."""
        return self.count("prompt") + self.count("completion")

    @cached_property
    def has_tokens(self) -> Flags:
        """Whether both parts of the tokens are known."""
        return self.is_known("prompt") & self.is_known("completion")

    @cached_property
    def lacks_usage(self) -> Flags:
        """Whether the usage of each reply is unknown in part; a failure without a billed attempt has used nothing."""
        return ~self.has_tokens & ~used_nothing(self.is_failed, self.count("unconfirmed"))

    def flag(self, name: str) -> Flags:
        """Column of truth values, with False for null."""
        return self._numbers(name, False).astype(np.bool_)

    def count(self, name: str) -> Ints:
        """Column of whole numbers, with 0 for null."""
        return self._numbers(name, 0).astype(np.int64)

    def is_known(self, name: str) -> Flags:
        """Whether each number of a column is known."""
        return np.asarray(self._table[name].is_valid().to_numpy(), np.bool_)

    def _numbers(self, name: str, unknown: Any) -> npt.NDArray[Any]:
        return np.asarray(pc.fill_null(self._table[name], unknown).to_numpy())
