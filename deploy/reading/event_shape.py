"""The shape that an event of the record must have to be read as one of its kind."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError


class Shape(BaseModel):
    """Base of the shapes: strict about types, and about nothing that it does not name."""

    model_config = ConfigDict(frozen=True, strict=True)


S = TypeVar("S", bound=Shape)


def read_as(shape: type[S], data: Any) -> S | None:
    """The data of an event in a shape; None when they are not of it: another protocol's event of the same name."""
    try:
        return shape.model_validate(data)
    except ValidationError:
        return None
