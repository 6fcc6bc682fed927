"""Reply types of the synthesizer: the task's answer in its domain's form, and the reason."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, ClassVar

import msgspec
from pydantic import AfterValidator, Field, create_model

from moot.protocols.asked_lengths import asked
from moot.protocols.case import Case, Domain
from moot.protocols.replies import Answer, Reply
from moot.protocols.reply_ids import reply_factory
from moot.protocols.rubrics.rubric import whole_number
from moot.protocols.tasks.essays import scores_of
from moot.protocols.text.numbers import stated_number


def _with_a_number(answer: str) -> str:
    if stated_number(answer) is None:
        raise ValueError("is not one number: write the number alone")
    return answer


class Synthesis(Reply):
    """An answer from both arguments: one of the case's labels where it has such, else a short text."""

    prose: ClassVar[str] = "rationale"

    answer: Answer
    rationale: str = Field(default="", json_schema_extra=asked("rationale"))


_NUMBER_ALONE: dict[str, Any] = {"pattern": r"^-?[0-9]{1,12}(\.[0-9]{1,6})?$", "maxLength": 20}


class NumberSynthesis(Synthesis):
    """An answer that states one number."""

    answer: Annotated[Answer, AfterValidator(_with_a_number), Field(json_schema_extra=_NUMBER_ALONE)]


def synthesis_for(case: Case, domain: Domain) -> type[Synthesis]:
    """The reply model that a case's answer must fit. Labels are held to by whoever reads the reply."""
    scale = case.criterion if domain == "rubric scoring" else None
    if scale is not None and case.labels in (None, scores_of(scale)):
        return score_synthesis(msgspec.json.encode((scale.lowest, scale.highest)).decode())
    return NumberSynthesis if case.labels is None and domain == "mathematics" else Synthesis


@reply_factory
@lru_cache(maxsize=256)
def score_synthesis(argument: str) -> type[Synthesis]:
    """The reply model of a scale: how agents, who know only a reply's path, find it.

    Args:
        argument: JSON of `[lowest, highest]`.
    """
    lowest, highest = msgspec.json.decode(argument, type=tuple[int, int])

    def on_the_scale(answer: str) -> str:
        score = whole_number(answer, highest)
        if score is None or not lowest <= score <= highest:
            raise ValueError(f"is {answer[:40]!r}, expected a whole number from {lowest} to {highest}")
        return str(score)

    made = create_model(
        "ScoreSynthesis",
        __base__=Synthesis,
        __module__=__name__,
        answer=(Annotated[Answer, AfterValidator(on_the_scale)], ...),
    )
    made.made_by = f"{__name__}:score_synthesis({argument})"  # type: ignore[attr-defined]
    return made
