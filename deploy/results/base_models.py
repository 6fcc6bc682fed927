"""Base model of results."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Immutable base model; ignores unknown fields of its source."""

    model_config = ConfigDict(frozen=True)
