"""Tables of the analysis: rows for files, and columns for display."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from moot.deploy.results.report.blocks import Table as Block
from moot.deploy.results.text import p_value

Value = str | float | int | bool | None
"""Value of a cell. NaN and None are unknown, null in files."""


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table with its format.

    Attributes:
        key: name in files.
        title: displayed name.
        interval: whether the columns `KEY_low` and `KEY_high` contain its 95 % interval.
        digits: decimals of a number; None for text and counts.
        is_p: whether it is a p-value (or a q-value).
        short: title in a terminal; empty for a column of the page and the files only.
    """

    key: str
    title: str
    interval: bool = False
    digits: int | None = 3
    is_p: bool = False
    short: str = ""


@dataclass(frozen=True, slots=True)
class AnalysisTable:
    """Table of an analysis.

    Attributes:
        name: name of its files.
        title: displayed title.
        rows: values by column name; every row has the same keys, in the same order.
        shown: displayed columns, in order; in a terminal the first one is the heading of the rows that share it.
        notes: caveats.
        in_files_only: whether a terminal omits the table and the page collapses it.
        terse: rows shown in a terminal; None for all of them.
    """

    name: str
    title: str
    rows: Sequence[Mapping[str, Value]]
    shown: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    in_files_only: bool = False
    terse: Sequence[Mapping[str, Value]] | None = None

    def block(self, title: str = "", most: int | None = None) -> Block:
        """Report block of the table, or of its first rows; a terminal shows fewer columns."""
        rows = [[format_cell(row, column) for column in self.shown] for row in self.rows[:most]]
        header = [column.title for column in self.shown]
        return Block(title, header, rows, folded=self.in_files_only, terse=self._for_terminal())

    def _for_terminal(self) -> Block:
        """Table of the columns with a short title; a cell does not repeat its heading (`confident ->`)."""
        columns = [
            replace(column, digits=2) if column.interval else column for column in self.shown[1:] if column.short
        ]
        rows = [
            (
                format_cell(row, self.shown[0]),
                *(format_cell(row, column).removeprefix(f"{column.short} ") for column in columns),
            )
            for row in (self.rows if self.terse is None else self.terse)
        ]
        return Block("", (self.shown[0].title, *(column.short for column in columns)), rows, grouped=True)

    def arrow(self) -> pa.Table:
        """Arrow table of the rows, with null for NaN."""
        names = list(self.rows[0]) if self.rows else [column.key for column in self.shown]
        columns = {name: [_known(row[name]) for row in self.rows] for name in names}
        return pa.table({name: pa.array(values) for name, values in columns.items()})


def with_interval(name: str, value: float | None, ends: Sequence[float | None] = (None, None)) -> dict[str, Value]:
    """Columns of a figure and its interval."""
    low, high = ends
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def format_cell(row: Mapping[str, Value], column: Column) -> str:
    """Text of a cell; `-` is unknown.

    >>> format_cell({"rho": 0.25, "rho_low": 0.1, "rho_high": 0.4}, Column("rho", "rho", interval=True))
    '0.250 [0.100, 0.400]'
    >>> format_cell({"x": -0.0001}, Column("x", "x", digits=2))
    '0.00'
    >>> format_cell({"n": 12000}, Column("n", "n", digits=None)), format_cell({"x": None}, Column("x", "x"))
    ('12,000', '-')
    """
    value = _known(row[column.key])
    if value is None:
        return "-"
    if column.is_p:
        return p_value(float(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if column.digits is None:
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    shown = _fixed(value, column.digits)
    low, high = (_known(row.get(f"{column.key}_{end}")) for end in ("low", "high"))
    if not column.interval or low is None or high is None:
        return shown
    return f"{shown} [{_fixed(float(low), column.digits)}, {_fixed(float(high), column.digits)}]"


def _fixed(value: float, digits: int) -> str:
    """Number with fixed decimals, without the sign of a zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def _known(value: Value) -> Value:
    return None if isinstance(value, float) and math.isnan(value) else value
