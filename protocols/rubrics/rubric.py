"""A rubric: dimensions with their scales, a flag for severe failures, and instructions. It is data, read from YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from moot.protocols.errors import ConfigError, unknown_name

_SHIPPED = Path(__file__).parent

FLAG, ISSUES, REASONING = "critical_flag", "critical_issues_description", "reasoning"
"""The keys of a judge's reply that are no dimensions."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MOST_DIMENSIONS = 20


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Dimension(_Part):
    """One thing that a reply is scored on.

    Attributes:
        question: what the judge asks of the reply.
        levels: by score what earns it; the scores are the scale, whole numbers without a gap.
        passes_at: the lowest score that passes; None when nothing is said to pass.
    """

    question: str = Field(min_length=1)
    levels: dict[int, str] = Field(min_length=2)
    passes_at: int | None = None

    @field_validator("levels")
    @classmethod
    def _in_order(cls, levels: dict[int, str]) -> dict[int, str]:
        scores = sorted(levels)
        if scores != list(range(scores[0], scores[-1] + 1)):
            raise ValueError(f"expected whole scores without a gap, found {', '.join(map(str, scores))}")
        return {score: levels[score] for score in scores}

    @model_validator(mode="after")
    def _passes_on_the_scale(self) -> Self:
        if self.passes_at is not None and self.passes_at not in self.levels:
            raise ValueError(f"`passes_at` is {self.passes_at}, which is no score of `levels`")
        return self

    @property
    def lowest(self) -> int:
        """The lowest score."""
        return min(self.levels)

    @property
    def highest(self) -> int:
        """The highest score."""
        return max(self.levels)


class Rubric(_Part):
    """What a panel of judges scores replies on.

    Attributes:
        name: what its figures are known by.
        instructions: what the judge is told before the dimensions.
        dimensions: by name, in the order in which they are shown; names are lower case with underscores.
        flag: what makes a reply fail as a whole; empty for a rubric without a flag.
        set_as_a_whole: as a protocol's setting it is one value: half of two rubrics is none.
    """

    set_as_a_whole: ClassVar[bool] = True

    name: str = Field(min_length=1)
    instructions: str = Field(min_length=1)
    dimensions: dict[str, Dimension] = Field(min_length=1, max_length=_MOST_DIMENSIONS)
    flag: str = ""

    @field_validator("dimensions")
    @classmethod
    def _names(cls, dimensions: dict[str, Dimension]) -> dict[str, Dimension]:
        for name in dimensions:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r}: expected a name of lower-case letters, digits and underscores")
            if name in (FLAG, ISSUES, REASONING):
                raise ValueError(f"{name!r} is a key that every judge's reply has: choose another name")
        return dimensions

    @property
    def scales(self) -> dict[str, tuple[int, int]]:
        """The lowest and the highest score of each dimension, and of the flag where there is one."""
        scales = {name: (each.lowest, each.highest) for name, each in self.dimensions.items()}
        return scales | ({FLAG: (0, 1)} if self.flag else {})

    @property
    def lowest_total(self) -> int:
        """The lowest sum of the dimensions of a reply that is not flagged."""
        return sum(dimension.lowest for dimension in self.dimensions.values())

    @property
    def highest_total(self) -> int:
        """The highest sum of the dimensions."""
        return sum(dimension.highest for dimension in self.dimensions.values())

    def total(self, scores: Mapping[str, int], flagged: bool) -> int:
        """Q: the sum of a judge's scores, 0 when the reply is flagged ("Early-Token Confidence", section 3.4.3)."""
        return 0 if flagged else sum(scores[name] for name in self.dimensions)


def shipped_rubrics() -> list[str]:
    """The names of the rubrics that come with the package."""
    return sorted(path.stem for path in _SHIPPED.glob("*.yaml"))


@cache
def shipped_rubric(name: str) -> Rubric:
    """A rubric that comes with the package.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in shipped_rubrics():
        raise unknown_name("rubric", name, shipped_rubrics())
    return read_rubric(_SHIPPED / f"{name}.yaml")


def read_rubric(path: Path) -> Rubric:
    """The rubric of a YAML file.

    Raises:
        ConfigError: one line; the file cannot be read, is no YAML mapping, or is no rubric.
    """
    try:
        content: Any = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"rubric {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"rubric {path}: is not UTF-8 text") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise ConfigError(f"rubric {path}: is not YAML{where}") from None
    if not isinstance(content, Mapping):
        raise ConfigError(f"rubric {path}: expected a mapping with name, instructions and dimensions")
    try:
        return Rubric.model_validate({"name": path.stem, **content})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"rubric {path}: `{where}`: {first['msg'].removeprefix('Value error, ')}") from None
