"""Scores out of ten in a judge's reply: numbers, or texts that clearly mean one, with repairs on record."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from moot.protocols.replies import Reply

_OUT_OF_TEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*10(?:\.0)?\s*", re.ASCII)
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*", re.ASCII)


def _truth_is_no_mark(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number from 0 to 10")
    return value


Mark = Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False), BeforeValidator(_truth_is_no_mark)]
"""Score of a judge, from 0 to 10."""


class Marked(Reply):
    """A reply with marks, which are also taken when written `8/10` or `80%`.

    Attributes:
        marks: names of the fields that are marks.
        repairs: the marks that were not written as numbers, e.g. `validity: 8/10`; never asked of a judge.
    """

    marks: ClassVar[tuple[str, ...]] = ()

    repairs: SkipJsonSchema[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _as_numbers(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        read = {name: _out_of_ten(value[name]) for name in cls.marks if isinstance(value.get(name), str)}
        mended = {name: mark for name, mark in read.items() if mark is not None}
        if not mended:
            return value
        return {**value, **mended, "repairs": tuple(f"{name}: {value[name].strip()}" for name in mended)}


def _out_of_ten(written: str) -> float | None:
    """The score in `8/10` or `80%`; None for anything else."""
    if found := _OUT_OF_TEN.fullmatch(written):
        return float(found[1])
    if found := _PERCENT.fullmatch(written):
        return float(found[1]) / 10.0
    return None
