"""Base of the settings of every protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
"""Number from 0 to 1."""


class Settings(BaseModel):
    """Base class of every settings section: frozen, unknown keys refused.

    A partially specified group keeps its own defaults for its other keys, even where they differ from those of the
    group's class.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _groups_keep_their_defaults(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        groups = {
            name: {**field.default.model_dump(exclude_unset=True), **value[name]}
            for name, field in cls.model_fields.items()
            if isinstance(field.default, Settings) and isinstance(value.get(name), Mapping)
        }
        return {**value, **groups} if groups else value
