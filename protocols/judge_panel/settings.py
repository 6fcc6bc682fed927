"""What can be set on the judge panel."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from moot.protocols.rubrics.rubric import Rubric, shipped_rubric
from moot.protocols.settings import Settings


class JudgePanelSettings(Settings):
    """How replies are judged.

    Attributes:
        rubric: what judges look at, as data or as the name of one that comes with the package.
        passes: how often each judge reads each reply.
    """

    rubric: Rubric = shipped_rubric("reasoning")
    passes: int = Field(default=1, ge=1, le=20)

    @field_validator("rubric", mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        return shipped_rubric(given) if isinstance(given, str) else given
