"""Reply type of a judge under a rubric: its reasoning, one whole score per dimension, and the flag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BeforeValidator, Field, create_model

from moot.protocols.asked_lengths import asked
from moot.protocols.reply_ids import reply_factory
from moot.protocols.reply_limits import longest
from moot.protocols.rubrics.rubric import Rubric, whole_number
from moot.protocols.rubrics.score_sheet import FLAG, ISSUES, REASONING, ScoreSheet

_TRUTH = {"true": 1, "yes": 1, "false": 0, "no": 0}


def score_sheet_type(rubric: Rubric) -> type[ScoreSheet]:
    """The reply model of a rubric; equal scales give the same class."""
    scales = {name: (dimension.lowest, dimension.highest) for name, dimension in rubric.dimensions.items()}
    return mark_sheet(msgspec.json.encode((scales, bool(rubric.flag))).decode())


@reply_factory
@lru_cache(maxsize=256)
def mark_sheet(argument: str) -> type[ScoreSheet]:
    """The reply model of some scales: how agents, who know only a reply's path, find it.

    Args:
        argument: JSON of `[{dimension: [lowest, highest]}, has a flag]`.
    """
    scales: Mapping[str, tuple[int, int]]
    scales, flag = msgspec.json.decode(argument, type=tuple[dict[str, tuple[int, int]], bool])
    issues, reasoning = (
        Annotated[str, BeforeValidator(_null_is_empty), Field(json_schema_extra=length)]
        for length in (longest(300), asked("assessment"))
    )
    fields: dict[str, Any] = {REASONING: (reasoning, "")}
    if flag:
        fields[ISSUES] = (issues, "")
    fields |= {
        name: (Annotated[Literal[tuple(range(lowest, highest + 1))], BeforeValidator(_score_up_to(highest))], ...)
        for name, (lowest, highest) in scales.items()
    }
    if flag:
        fields[FLAG] = (Annotated[Literal[0, 1], BeforeValidator(_flag)], ...)
    made = create_model("MarkSheet", __base__=ScoreSheet, __module__=__name__, **fields)
    made.made_by = f"{__name__}:mark_sheet({argument})"
    return made


def _score_up_to(top: int) -> Callable[[Any], Any]:
    """Parses a score of a scale; an invalid one is unchanged, so that the error names it."""

    def score(value: Any) -> Any:
        found = whole_number(value, top)
        if found is None and isinstance(value, bool):
            raise ValueError("must be a score, not true or false")
        return value if found is None else found

    return score


def _flag(value: Any) -> Any:
    """A flag as models write it: 0 or 1, true or false, yes or no."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and (word := value.strip().strip(".").casefold()) in _TRUTH:
        return _TRUTH[word]
    found = whole_number(value)
    return value if found is None else found


def _null_is_empty(value: Any) -> Any:
    return "" if value is None else value
