"""Pages of a run's cases: filtered, searched and sorted on columns, so that of a million cases one page is read."""

from __future__ import annotations

from collections import OrderedDict
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from moot.deploy.results.run_report.case_table import case_table
from moot.deploy.results.run_report.cases import CaseHead, case_heads

MOST_ROWS = 500
"""Rows of a page."""

DEBATED = "debated"
"""Beside the outcomes, cases with at least one round."""

_ORDERS = 8
"""Orders of rows kept in memory: of each sorting, filter and search that was asked for last."""

_PLACE = "place"


class CaseQuery(BaseModel):
    """Which cases, and which page of them.

    Attributes:
        offset, limit: the page.
        sort: a column; empty for the order of the task.
        desc: whether the largest comes first; what is unknown comes last.
        q: a text that a column holds, in small or capital letters.
        outcome: how the cases ended, or `DEBATED`; empty for all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    offset: int = Field(default=0, ge=0, le=2**40)
    limit: int = Field(default=100, ge=1, le=MOST_ROWS)
    sort: str = Field(default="", max_length=40)
    desc: bool = False
    q: str = Field(default="", max_length=500)
    outcome: str = Field(default="", max_length=40)


class CaseIndex:
    """The table of a run's cases, as the record was when it was read.

    Args:
        folder: of the run.

    Raises:
        RecordError: the record cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        table = case_table(folder)
        heads = case_heads(table)
        self._table = table.rows.select([head.name for head in heads])
        self._columns = [_described(head, self._table[head.name].type) for head in heads]
        self._texts = [name for name in self._table.column_names if pa.types.is_string(self._table[name].type)]
        self._table = self._table.append_column(_PLACE, pa.array(range(self._table.num_rows), pa.int64()))
        self._orders: OrderedDict[tuple[str, bool, str, str], pa.Array] = OrderedDict()

    @property
    def total(self) -> int:
        """How many cases there are."""
        return int(self._table.num_rows)

    def described(self) -> dict[str, Any]:
        """What a page knows of the table before it reads a row."""
        found = pc.value_counts(self._table["outcome"]).to_pylist()
        counts = {row["values"]: row["counts"] for row in found}
        if DEBATED not in counts and "rounds" in self._table.column_names:
            counts[DEBATED] = pc.sum(pc.greater(self._table["rounds"], 0)).as_py() or 0
        return {"server": True, "columns": self._columns, "total": self.total, "counts": counts}

    def page(self, query: CaseQuery) -> dict[str, Any]:
        """A page of rows, and how many cases there are that match."""
        order = self._order(query)
        rows = self._table.take(order.slice(query.offset, query.limit)).drop_columns([_PLACE])
        return {"total": len(order), "rows": rows.to_pylist()}

    def _order(self, query: CaseQuery) -> pa.Array:
        """Places of the cases that match, in the order asked for."""
        sort = query.sort if query.sort in self._table.column_names else _PLACE
        key = (sort, query.desc, query.q, query.outcome)
        if key not in self._orders:
            self._orders[key] = self._ordered(*key)
            while len(self._orders) > _ORDERS:
                self._orders.popitem(last=False)
        self._orders.move_to_end(key)
        return self._orders[key]

    def _ordered(self, sort: str, desc: bool, text: str, outcome: str) -> pa.Array:
        rows = self._table
        if outcome == DEBATED and "rounds" in rows.column_names:
            rows = rows.filter(pc.greater(rows["rounds"], 0))
        elif outcome:
            rows = rows.filter(pc.equal(rows["outcome"], outcome))
        if text:
            held = (pc.match_substring(pc.fill_null(rows[name], ""), text, ignore_case=True) for name in self._texts)
            rows = rows.filter(reduce(pc.or_, held))
        order = [(sort, "descending" if desc else "ascending"), (_PLACE, "ascending")]
        found: pa.Array = rows[_PLACE].combine_chunks()
        return found.take(pc.sort_indices(rows, order[: 1 if sort == _PLACE else 2]))


def _described(head: CaseHead, kind: pa.DataType) -> dict[str, Any]:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return {"name": head.name, "title": head.title, "note": head.note, "number": is_number}
