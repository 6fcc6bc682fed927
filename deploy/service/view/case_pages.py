"""Pages of a run's cases: filtered, searched and sorted on columns, so that of a million cases one page is read."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from moot.actors.record.tables import read_table
from moot.deploy.results.summaries.run_figures import latest_attempts

OUTCOMES = ("right", "wrong", "unscored", "failed", "open")
"""How a case ended: `unscored` has a verdict but nothing to compare it with, `open` has no verdict yet."""

MOST_ROWS = 500
"""Rows of a page."""

_EXCERPT = 160
"""Characters of a question in a row."""

_ORDERS = 8
"""Orders of rows kept in memory: of each sorting, filter and search that was asked for last."""


class CaseQuery(BaseModel):
    """Which cases, and which page of them.

    Attributes:
        offset, limit: the page.
        sort: a column; empty for the order of the task.
        desc: whether the largest comes first.
        q: a text that the id, the question or the answer holds, in small or capital letters.
        outcome: one of `OUTCOMES`; empty for all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    offset: int = Field(default=0, ge=0, le=2**40)
    limit: int = Field(default=100, ge=1, le=MOST_ROWS)
    sort: str = Field(default="", max_length=40)
    desc: bool = False
    q: str = Field(default="", max_length=500)
    outcome: str = Field(default="", max_length=40)


class CaseIndex:
    """Columns of a run's cases, as the record was when they were read.

    Args:
        folder: of the run.

    Raises:
        RecordError: the record cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._table = _case_table(folder)
        self._orders: OrderedDict[tuple[str, bool, str, str], pa.Array] = OrderedDict()

    @cached_property
    def counts(self) -> dict[str, int]:
        """Cases by outcome."""
        found = {row["values"]: row["counts"] for row in pc.value_counts(self._table["outcome"]).to_pylist()}
        return {name: found[name] for name in OUTCOMES if name in found}

    def page(self, query: CaseQuery) -> dict[str, Any]:
        """A page: the rows, and how many cases there are, and of them match."""
        order = self._order(query)
        rows = self._table.take(order.slice(query.offset, query.limit)).to_pylist()
        for row in rows:
            row["question"] = row["question"][:_EXCERPT] if row["question"] else row["question"]
        return {"total": self._table.num_rows, "matching": len(order), "counts": self.counts, "rows": rows}

    def _order(self, query: CaseQuery) -> pa.Array:
        """Row numbers of the cases that match, in the order asked for."""
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
        if outcome:
            rows = rows.filter(pc.equal(rows["outcome"], outcome))
        if text:
            held = [pc.match_substring(pc.fill_null(rows[name], ""), text, ignore_case=True) for name in _SEARCHED]
            rows = rows.filter(pc.or_(pc.or_(*held[:2]), held[2]))
        order = [(sort, "descending" if desc else "ascending"), (_PLACE, "ascending")]
        return rows[_PLACE].take(pc.sort_indices(rows, order[: 1 if sort == _PLACE else 2]))


_PLACE = "place"
_SEARCHED = ("case", "question", "answer")
_VERDICT = ["answer", "how", "rounds", "confidence", "failed", "failure", "correct"]
_USED = ["prompt_tokens", "completion_tokens", "calls_without_usage"]


def _case_table(folder: Path) -> pa.Table:
    """A row per case in the order of the task, with the verdict of its latest attempt."""
    cases = read_table(folder, "cases", ["index", "question", "gold"])
    cases = cases.append_column("row", pa.array(range(cases.num_rows), pa.int64()))
    verdicts = latest_attempts(read_table(folder, "verdicts", [*_VERDICT, *_USED]))
    verdicts = verdicts.append_column("tokens", _tokens(verdicts)).drop_columns(_USED)
    found = cases.join(verdicts, "case_id").sort_by([("index", "ascending"), ("row", "ascending")])
    found = found.append_column("outcome", _outcomes(found)).drop_columns(["index", "row", "failed", "correct"])
    found = found.rename_columns({"case_id": "case"})
    return found.append_column(_PLACE, pa.array(range(found.num_rows), pa.int64())).combine_chunks()


def _tokens(verdicts: pa.Table) -> pa.ChunkedArray:
    """Tokens of the replies that a verdict rests on; null when one of them is unknown."""
    used = pc.add(pc.cast(verdicts["prompt_tokens"], pa.int64()), pc.cast(verdicts["completion_tokens"], pa.int64()))
    return pc.if_else(pc.equal(pc.fill_null(verdicts["calls_without_usage"], 0), 0), used, None)


def _outcomes(rows: pa.Table) -> pa.ChunkedArray:
    failed, correct = rows["failed"], rows["correct"]
    whether = [failed, correct, pc.invert(correct), failed.is_valid()]
    conditions = pc.make_struct(*(pc.fill_null(each, False) for each in whether))
    return pc.case_when(conditions, "failed", "right", "wrong", "unscored", "open")
