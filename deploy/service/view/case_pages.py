"""Pages of a run's cases: filtered, searched and sorted on columns, so that only one page of a million cases is
read."""

from __future__ import annotations

import time
from collections import OrderedDict
from functools import cached_property, reduce
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, field_validator

from moot.deploy.results.case_table import DEBATED, CaseHead, case_heads, case_table
from moot.deploy.results.record import RunRecord
from moot.deploy.results.text import visible_line
from moot.deploy.service.errors import RequestError
from moot.deploy.service.view.case_filters import filter_mask, holds_text, is_number

MOST_ROWS = 500
"""Most rows of a page."""

_ORDERS = 8
"""Row orders in memory: those of the latest combinations of sort, filter and search."""

_PLACE, _DEBATED = _INTERNAL = ("place", "was debated")

_Column = Annotated[str, Field(max_length=40)]
_Wanted = Annotated[str, Field(max_length=200)]


class CaseQuery(BaseModel):
    """Query for a page of cases.

    Attributes:
        offset, limit: range of the page.
        sort: a column; empty for the order of the task.
        desc: whether to sort in descending order; unknown values come last.
        q: text to search in the columns, case-insensitive.
        outcome: outcome of the cases, or `DEBATED` for those that were; empty for all.
        filters: by column, what it holds: a text, or of a number a `NumberRange`. In an address it is JSON.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    offset: int = Field(default=0, ge=0, le=2**40)
    limit: int = Field(default=100, ge=1, le=MOST_ROWS)
    sort: str = Field(default="", max_length=40)
    desc: bool = False
    q: str = Field(default="", max_length=500)
    outcome: str = Field(default="", max_length=40)
    filters: dict[_Column, _Wanted] = Field(default={}, max_length=20)

    @field_validator("filters", mode="before")
    @classmethod
    def _decoded(cls, text: str) -> Any:
        try:
            return msgspec.json.decode(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"is not JSON: {error}") from None


class _OrderKey(NamedTuple):
    """What an order of rows depends on."""

    sort: str
    desc: bool
    text: str
    outcome: str
    filters: tuple[tuple[str, str], ...]


class CaseIndex:
    """Table of a run's cases, as of its reading.

    Args:
        folder: of the run.

    Raises:
        RecordError: the record cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._read_at = time.time()
        record = RunRecord(folder)
        table, self._of_run = case_table(record), record.info.cases
        heads = [head for head in case_heads(table) if not head.hidden]
        self._table = table.rows.select([head.name for head in heads])
        self._columns = [_described(head, self._table[head.name].type) for head in heads]
        self._table = self._table.append_column(_PLACE, pa.array(range(self._table.num_rows), pa.int64()))
        self._table = self._table.append_column(_DEBATED, table.rows[DEBATED])
        self._orders: OrderedDict[_OrderKey, pa.Array] = OrderedDict()

    @property
    def total(self) -> int:
        """Number of cases."""
        return int(self._table.num_rows)

    def described(self) -> dict[str, Any]:
        """Description of the table for a page, without rows."""
        return {"server": True, "columns": self._columns, **self._totals}

    @cached_property
    def _totals(self) -> dict[str, Any]:
        """Number of cases: all that are registered, by outcome, and of the run, as far as known; when they were read
        (Unix time)."""
        found = pc.value_counts(self._table["outcome"]).to_pylist()
        counts = {row["values"]: row["counts"] for row in found}
        counts[DEBATED] = pc.sum(self._table[_DEBATED]).as_py() or 0
        return {"all": self.total, "counts": counts, "of_run": self._of_run, "read_at": self._read_at}

    def page(self, query: CaseQuery) -> dict[str, Any]:
        """A page of rows, how many cases there are that match, and what `described` has, which grows with a run.

        Raises:
            RequestError: 422, the table has no such column.
        """
        order = self._order(query)
        rows = self._table.take(order.slice(query.offset, query.limit)).drop_columns([*_INTERNAL])
        return {"total": len(order), "rows": rows.to_pylist(), **self.described()}

    def _order(self, query: CaseQuery) -> pa.Array:
        """Indices of the matching cases, in the requested order."""
        for name in [*([query.sort] if query.sort else []), *query.filters]:
            if name in _INTERNAL or name not in self._table.column_names:
                raise RequestError(422, f"the table of cases has no column {visible_line(name)!r}")
        filters = tuple(sorted((name, text.strip()) for name, text in query.filters.items()))
        key = _OrderKey(query.sort or _PLACE, query.desc, query.q.strip(), query.outcome, filters)
        if key not in self._orders:
            self._orders[key] = self._ordered(key)
            while len(self._orders) > _ORDERS:
                self._orders.popitem(last=False)
        self._orders.move_to_end(key)
        return self._orders[key]

    def _ordered(self, key: _OrderKey) -> pa.Array:
        rows = self._table
        if key.outcome == DEBATED:
            rows = rows.filter(pc.equal(rows[_DEBATED], 1))
        elif key.outcome:
            rows = rows.filter(pc.equal(rows["outcome"], key.outcome))
        for name, wanted in key.filters:
            if (mask := filter_mask(rows[name], wanted)) is not None:
                rows = rows.filter(mask)
        if key.text:
            columns = (rows[name] for name in rows.column_names if name not in _INTERNAL)
            rows = rows.filter(reduce(pc.or_, (holds_text(column, key.text) for column in columns)))
        order = [(key.sort, "descending" if key.desc else "ascending"), (_PLACE, "ascending")]
        found: pa.Array = rows[_PLACE].combine_chunks()
        return found.take(pc.sort_indices(rows, order[: 1 if key.sort == _PLACE else 2]))


def _described(head: CaseHead, kind: pa.DataType) -> dict[str, Any]:
    return {"name": head.name, "title": head.title, "note": head.note, "number": is_number(kind)}
