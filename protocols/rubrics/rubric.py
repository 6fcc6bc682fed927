"""A rubric: dimensions with their scales, a flag for severe failures, and instructions. It is data, read from YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.rubrics.score_sheet import FLAG, ISSUES, REASONING, ScoreSheet
from moot.protocols.validation_messages import expected_value
from moot.protocols.yaml_file import read_keys_and_values

_WHOLE = re.compile(r"([-+]?\d{1,15})(?:\.0*)?(?:\s*/\s*(\d{1,15})(?:\.0*)?)?", re.ASCII)


def whole_number(value: object, top: int | None = None) -> int | None:
    """The whole number that a value is; None for anything else. Raises nothing.

    A truth value is no number. So is a fraction, unless it is out of the scale's top score.

    Args:
        top: the highest score of the scale; None for what has no scale.

    >>> [whole_number(value, top=3) for value in (3, 3.0, "3", "3.0", "+3", "3/3")]
    [3, 3, 3, 3, 3, 3]
    >>> [whole_number(value, top=3) for value in (True, 2.5, "2.5", "3/5", "three", None)]
    [None, None, None, None, None, None]
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    found = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or (found[2] and int(found[2]) != top):
        return None
    return int(found[1])


_SHIPPED = Path(__file__).parent

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MOST_DIMENSIONS = 20
_MOST_LEVELS = 21
_FURTHEST_SCORE = 1000


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("expected text, found none")
    return text


Words = Annotated[str, AfterValidator(_not_blank)]
"""Non-blank text."""


_TAKEN = frozenset({FLAG, ISSUES, REASONING, *dir(ScoreSheet)})
"""Names that a dimension would take from what a judge's reply has in any case."""


class _RubricPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Dimension(_RubricPart):
    """One thing that a reply is scored on.

    Attributes:
        question: what the judge asks of the reply.
        levels: by score what earns it; the scores are the scale, whole numbers without a gap.
        passes_at: lowest passing score; None without one.
    """

    question: Words
    levels: dict[int, Words]
    passes_at: int | None = None

    @field_validator("levels", mode="before")
    @classmethod
    def _scores_are_written_as_numbers(cls, levels: Any) -> Any:
        """YAML reads `yes` as true, which would be a score of 1; in JSON, as settings are kept, keys are texts."""
        if not isinstance(levels, Mapping):
            return levels
        if not 2 <= len(levels) <= _MOST_LEVELS:
            raise ValueError(f"expected 2 to {_MOST_LEVELS} scores, found {len(levels)}")
        scores = {score: _score(score) for score in levels}
        if len(set(scores.values())) < len(levels):
            raise ValueError("a score is given twice")
        return {scores[score]: text for score, text in levels.items()}

    @field_validator("levels")
    @classmethod
    def _in_order(cls, levels: dict[int, str]) -> dict[int, str]:
        scores = sorted(levels)
        if scores[-1] - scores[0] != len(scores) - 1:
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


class Rubric(_RubricPart):
    """Rubric: the dimensions on which judges score replies.

    Attributes:
        name: what its figures are known by.
        instructions: text for the judge before the dimensions.
        dimensions: by name, in the order in which they are shown; names are lower case with underscores.
        flag: what makes a reply fail as a whole; empty for a rubric without a flag.
        set_as_a_whole: as a protocol's setting it is one value; two rubrics are not merged.
    """

    set_as_a_whole: ClassVar[bool] = True

    name: Words
    instructions: Words
    dimensions: dict[str, Dimension] = Field(min_length=1, max_length=_MOST_DIMENSIONS)
    flag: str = ""

    @field_validator("flag")
    @classmethod
    def _blank_is_none(cls, flag: str) -> str:
        return flag if flag.strip() else ""

    @field_validator("dimensions")
    @classmethod
    def _names(cls, dimensions: dict[str, Dimension]) -> dict[str, Dimension]:
        for name in dimensions:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r}: expected a name of lower-case letters, digits and underscores")
            if name in _TAKEN or name.startswith("model_"):
                raise ValueError(f"{name!r} means something else in a judge's reply: choose another name")
        return dimensions

    @property
    def scales(self) -> dict[str, tuple[int, int]]:
        """The lowest and the highest score of each dimension, and of the flag where there is one."""
        scales = {name: (each.lowest, each.highest) for name, each in self.dimensions.items()}
        return scales | ({FLAG: (0, 1)} if self.flag else {})

    @property
    def passes_at(self) -> dict[str, int]:
        """Lowest passing score of each dimension with one."""
        return {name: each.passes_at for name, each in self.dimensions.items() if each.passes_at is not None}

    def total(self, scores: Mapping[str, int], flagged: bool | None) -> int:
        """Q: the sum of a judge's scores, 0 when the reply is flagged ("Early-Token Confidence", section 3.4.3)."""
        return 0 if flagged else sum(scores[name] for name in self.dimensions)


def _score(written: Any) -> int:
    number = whole_number(written)
    if number is None or abs(number) > _FURTHEST_SCORE:
        near = f"from -{_FURTHEST_SCORE} to {_FURTHEST_SCORE}"
        raise ValueError(f"expected whole numbers {near} as scores, found {str(written)[:40]!r}")
    return number


def shipped_rubrics() -> list[str]:
    """The names of the rubrics that come with the package."""
    return sorted(path.stem for path in _SHIPPED.glob("*.yaml"))


@cache
def shipped_rubric(name: str) -> Rubric:
    """A rubric that comes with the package.

    Raises:
        ConfigError: there is no rubric of that name.
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
        content = read_keys_and_values(path)
    except ConfigError as error:
        raise ConfigError(f"rubric {error}") from None
    return rubric_of_data({"name": path.stem, **content}, f"rubric {path}")


def rubric_of_data(content: Mapping[str, Any], where: str = "rubric") -> Rubric:
    """A rubric from plain data.

    Args:
        where: what an error begins with.

    Raises:
        ConfigError: one line; an unknown key, with the nearest known one, before anything else that is wrong.
    """
    try:
        return Rubric.model_validate(content)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
        *parents, key = map(str, first["loc"])
        if first["type"] == "extra_forbidden":
            known = (Dimension if parents else Rubric).model_fields
            place = f" `{'.'.join(parents)}`:" if parents else ""
            raise ConfigError(f"{where}:{place} {unknown_name('key', key, known)}") from None
        raise ConfigError(f"{where}: `{'.'.join([*parents, key])}`: {expected_value(first)}") from None
