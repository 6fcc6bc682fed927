"""Bases of what is read from a record and shown, and how an event is read by the shape that its kind must have."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError


class FrozenModel(BaseModel):
    """A part of what is shown; what it is read from may hold more."""

    model_config = ConfigDict(frozen=True)


S = TypeVar("S", bound=BaseModel)


def parse_event(shape: type[S], data: Any) -> S | None:
    """The data of an event in a shape; None when they are not of it: another protocol's event of the same name."""
    try:
        return shape.model_validate(data)
    except ValidationError:
        return None
