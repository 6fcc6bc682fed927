"""The tables and columns of the record."""

from __future__ import annotations

from generator.markdown import code, page, table
from moot.actors.record.schema import COLUMNS, KEYS, ROWS


def record_page() -> str:
    """The tables of a record and their columns, below how to read it."""
    tables = [(f"[`{name}`](#{name})", ", ".join(map(code, KEYS[name])), ROWS[name]) for name in COLUMNS]
    parts = ["## Tables", table(("table", "key", "rows"), tables)]
    for name, columns in COLUMNS.items():
        rows = [
            (
                code(each.name),
                code(str(each.kind).replace("item: ", "")),
                "yes" if each.volatile else "",
                each.meaning,
            )
            for each in columns
        ]
        parts += [f"### `{name}`", table(("column", "type", "volatile", "meaning"), rows)]
    return page(*parts)
