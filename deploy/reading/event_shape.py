"""Reading an event of the record by the shape that one of its kind must have."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

S = TypeVar("S", bound=BaseModel)


def read_as(shape: type[S], data: Any) -> S | None:
    """The data of an event in a shape; None when they are not of it: another protocol's event of the same name."""
    try:
        return shape.model_validate(data)
    except ValidationError:
        return None
