"""Columns of a user's file that hold text and that no field of a case takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice

from moot.protocols.errors import TaskFileError
from moot.protocols.tasks.row import Row
from moot.protocols.tasks.text_in_cells import TextInCells

_ROWS = 2_000
"""Number of the first rows in which text is looked for: tenths of a second."""

_MOST_NAMED = 5


def unmapped_text(rows: Iterable[Row], used_in: Callable[[Row], Collection[str]]) -> tuple[str, ...]:
    """Columns without a field that hold text in the first rows, in their order; none of unreadable rows.

    Args:
        rows: of the table.
        used_in: the columns of a row that some field takes, or that the user has excluded.
    """
    found: dict[str, TextInCells] = {}
    try:
        for row in islice(rows, _ROWS):
            if row.problem is None:
                used = used_in(row)
                for name, value in row.values.items():
                    if name not in used:
                        found.setdefault(name, TextInCells()).add(value)
    except TaskFileError:  # such as a column of Parquet of a type that no field has
        return ()
    return tuple(name for name, cells in found.items() if cells.hold_text)


def unmapped_remark(columns: Collection[str], remedy: str) -> str:
    """Warning about columns without a field; empty without any."""
    if not columns:
        return ""
    named = ", ".join(f"`{name[:40]}`" for name in islice(columns, _MOST_NAMED))
    more = f" and {len(columns) - _MOST_NAMED:,} more" if len(columns) > _MOST_NAMED else ""
    return f"columns with text that no field of a case takes, so that no protocol reads it: {named}{more}; {remedy}"


def fixed_remarks(read: Callable[[], Iterator[Row]], fields: Collection[str]) -> Callable[[], tuple[str, ...]]:
    """Remarks of a task whose columns have fixed names.

    Args:
        read: gives the rows, each time anew.
        fields: the names.
    """
    return partial(_of_fixed, read, fields)


def _of_fixed(read: Callable[[], Iterator[Row]], fields: Collection[str]) -> tuple[str, ...]:
    columns = unmapped_text(read(), lambda row: fields)
    remedy = f"if models may see one, put it into a column of this task ({', '.join(fields)}), else remove it"
    return (unmapped_remark(columns, remedy),)
