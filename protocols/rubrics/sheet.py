"""What a judge replies under a rubric: one whole score per dimension, the flag, and its reasoning."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from pydantic import BeforeValidator, create_model

from moot.protocols.replies import Reply
from moot.protocols.rubrics.rubric import FLAG, ISSUES, REASONING, Rubric


class MarkSheet(Reply):
    """Base of the replies that `mark_sheet` makes; the fields are those of a rubric."""

    made_by: ClassVar[str] = ""

    def scores(self) -> dict[str, int]:
        """The score of each dimension, in the rubric's order."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in (FLAG, ISSUES, REASONING)}

    @property
    def flagged(self) -> bool:
        """Whether the judge found a severe failure; False under a rubric without a flag."""
        return bool(getattr(self, FLAG, 0))


def sheet_for(rubric: Rubric) -> type[MarkSheet]:
    """The reply model of a rubric; equal scales give the same class."""
    scales = {name: (dimension.lowest, dimension.highest) for name, dimension in rubric.dimensions.items()}
    return mark_sheet(msgspec.json.encode((scales, bool(rubric.flag))).decode())


@lru_cache(maxsize=256)
def mark_sheet(argument: str) -> type[MarkSheet]:
    """The reply model of some scales: how agents, who know only a reply's path, find it.

    Args:
        argument: JSON of `[{dimension: [lowest, highest]}, has a flag]`.
    """
    scales: Mapping[str, tuple[int, int]]
    scales, flag = msgspec.json.decode(argument, type=tuple[dict[str, tuple[int, int]], bool])
    fields: dict[str, Any] = {
        name: (Annotated[Literal[tuple(range(lowest, highest + 1))], BeforeValidator(_whole)], ...)
        for name, (lowest, highest) in scales.items()
    }
    if flag:
        fields |= {FLAG: (Annotated[Literal[0, 1], BeforeValidator(_whole)], ...), ISSUES: (str, "")}
    fields[REASONING] = (str, "")
    made = create_model("MarkSheet", __base__=MarkSheet, __module__=__name__, **fields)
    made.made_by = f"{__name__}:mark_sheet({argument})"
    return made


def _whole(value: Any) -> Any:
    """A whole number as models write it: `3`, `3.0`, `"3"`, `"3/3"` is none, and for flags true and false."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
