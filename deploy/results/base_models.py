"""Base of what is read from a record and shown."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A part of what is shown; what it is read from may hold more."""

    model_config = ConfigDict(frozen=True)
