"""Mapping of a batch's columns to the fields of a case, with checks for conflicts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from moot.protocols.errors import ConfigError, unknown_name

ID = "id"
_LIST_FIELDS = ("images", "documents", "labels", "choices")
"""Fields whose value is a list; a single value becomes a list of one."""


class ColumnMapping(BaseModel):
    """Mapping of columns to the fields of a case.

    Attributes:
        known: all fields of a case.
        by_name: fields that are read by default from columns of the same name.
        needed: fields of which every row needs at least one.
        columns: column by field; None for a field without a column.
        constant: value for all rows, by field.
        id_column: column with the rows' ids; None derives ids from the rows' content.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    known: tuple[str, ...]
    by_name: tuple[str, ...]
    needed: tuple[str, ...]
    columns: dict[str, str | None] = {}
    constant: dict[str, Any] = {}
    id_column: str | None = None

    def check(self) -> None:
        """Check the fields of `columns` and `constant`.

        Raises:
            ConfigError: a field is unknown (the message names the nearest known one), or is in both.
        """
        for field in (*self.columns, *self.constant):
            if field == ID or field not in self.known:
                raise unknown_name("field", field, [name for name in self.known if name != ID])
            if field in self.columns and field in self.constant:
                raise ConfigError(f"`{field}` is given twice, as a column and as a constant: leave one out")

    def found(self, names: Sequence[str], added: Collection[str]) -> dict[str, str]:
        """Column by field, for a batch with these columns.

        Args:
            names: the batch's columns.
            added: columns to add.

        Raises:
            ConfigError: a column is missing, or conflicts with an added one.
        """
        taken = sorted(set(names) & set(added))
        if taken:
            listed = ", ".join(f"`{name}`" for name in taken)
            raise ConfigError(f"the rows already have {listed}: rename the added columns with prefix=...")
        read: dict[str, str | None] = {name: name for name in self.by_name if name in names}
        read |= self.columns | ({} if self.id_column is None else {ID: self.id_column})
        found = {field: column for field, column in read.items() if column is not None and field not in self.constant}
        for column in found.values():
            if column not in names:
                raise unknown_name("column", column, names)
        if not any(field in found or field in self.constant for field in self.needed):
            needed = self.needed[0]
            raise ConfigError(
                f"no column `{needed}`, which every row needs: name the column with "
                f'columns={{"{needed}": ...}}; there are {", ".join(map(repr, names)) or "none"}'
            )
        return found

    def row(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of a row as plain data, without missing ones; a missing id is None, so that the row is refused."""
        values = {**{field: plain(value) for field, value in cells.items()}, **self.constant}
        values = {field: value for field, value in values.items() if value is not None or field == ID}
        for field in _LIST_FIELDS:
            if isinstance(values.get(field), str | bytes):
                values[field] = [values[field]]
        return values


def plain(value: Any) -> Any:
    """Cell of a table as plain data: NaN and null as None, arrays as lists, other objects as text.

    >>> import numpy as np
    >>> plain(np.array(["a", None])), plain(float("nan")), plain(np.int64(3)), plain({"x": np.float32(0.5)})
    (['a', None], None, 3, {'x': 0.5})
    """
    if value is None or isinstance(value, str | bytes | bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if hasattr(value, "tolist"):  # an array or scalar of numpy
        return plain(value.tolist())
    return None if str(value) in ("NaT", "<NA>") else str(value)
