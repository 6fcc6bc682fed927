"""What a judge replies when it reads a document: its reasons and rival reasons, each with two marks."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import ConfigDict, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from moot.protocols.replies import Reply

Mark = Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)]
"""A judge's mark, from 0 to 10."""

_MOST = 100
_MARKS = ("validity", "credibility")
_OUT_OF_TEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*10(?:\.0)?\s*", re.ASCII)
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*", re.ASCII)


def _without_description(schema: dict[str, Any]) -> None:
    schema.pop("description", None)


class Argument(Reply):
    """A reason or a rival reason, as a judge sees it.

    Attributes:
        text: the reason in one sentence.
        validity: how well it speaks for the claim, or as a rival against it, if it is true; 0 to 10. Also taken when
            written `8/10` or `80%`, which `repairs` then says.
        credibility: how far its source can be trusted; 0 to 10, read as `validity` is.
        is_claim: whether it needs reasons of its own.
        contradicts_facts: whether it says the opposite of a given fact.
        repairs: the marks that were not written as numbers, e.g. `validity: 8/10`; never asked of a judge.
    """

    # The text above is for people: a vendor would be sent it with every call.
    model_config = ConfigDict(json_schema_extra=_without_description)

    text: str = Field(min_length=1)
    validity: Mark
    credibility: Mark
    is_claim: bool = False
    contradicts_facts: bool = False
    repairs: SkipJsonSchema[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _marks_out_of_ten(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        read = {name: _out_of_ten(value[name]) for name in _MARKS if isinstance(value.get(name), str)}
        mended = {name: mark for name, mark in read.items() if mark is not None}
        if not mended:
            return value
        return {**value, **mended, "repairs": tuple(f"{name}: {value[name].strip()}" for name in mended)}

    @field_validator(*_MARKS, mode="before")
    @classmethod
    def _truth_is_no_mark(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("must be a number from 0 to 10")
        return value


class Reading(Reply):
    """A judge's reading of one document.

    Attributes:
        claim: what the document argues for; may be empty when it argues for nothing.
        reasons: what the document brings forward for it; empty when it brings nothing.
        rivals: the reasons against it.
        justification: why the reasons carry the claim or do not.
        reflection: where else, or under what other circumstances, the argument holds or fails (the source's last step).
    """

    claim: str
    reasons: list[Argument] = Field(max_length=_MOST)
    rivals: list[Argument] = Field(max_length=_MOST)
    justification: str = Field(min_length=1)
    reflection: str


def _out_of_ten(written: str) -> float | None:
    """The mark behind `8/10` or `80%`; None for anything else."""
    if found := _OUT_OF_TEN.fullmatch(written):
        return float(found[1])
    if found := _PERCENT.fullmatch(written):
        return float(found[1]) / 10.0
    return None
