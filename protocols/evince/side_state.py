"""State of a side: its last distribution with its arguments, and the judges' scores of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, field_validator

from moot.protocols.asked_lengths import asked
from moot.protocols.case import Case, label_in_words
from moot.protocols.crit.appraisal import CritDocument
from moot.protocols.distribution import CleanedDistribution, Predicted, clean
from moot.protocols.messages import Turn
from moot.protocols.replies import Reply

_SHOWN_FROM = 0.005


Sentence = Annotated[str, Field(json_schema_extra=asked("one_sentence"))]


class Argued(Reply):
    """Arguments for an estimate."""

    arguments: list[Sentence] = Field(min_length=1, max_length=50, json_schema_extra=asked("arguments"))

    @field_validator("arguments", "rebuttals", mode="before", check_fields=False)
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("arguments", "rebuttals", check_fields=False)
    @classmethod
    def _without_blanks(cls, value: list[str]) -> list[str]:
        return [text.strip() for text in value if text.strip()]

    @field_validator("arguments")
    @classmethod
    def _some(cls, value: list[str]) -> list[str]:
        if not value:
            raise ValueError("no argument is given")
        return value


class Rebutting(Argued):
    """Arguments, and answers to those of others."""

    rebuttals: list[Sentence] = Field(default=[], max_length=50, json_schema_extra=asked("rebuttals"))


class Estimate(Argued, Predicted):
    """Reply of a side that is shown no arguments of others: probabilities of the likeliest labels, then arguments."""


class Prediction(Rebutting, Estimate):
    """Reply of a side that is shown arguments of others: it also answers these."""


class ReasonedEstimate(Predicted, Argued):
    """An estimate whose arguments come first."""


class ReasonedPrediction(ReasonedEstimate, Rebutting):
    """A prediction whose arguments come first."""


Stated = Estimate | ReasonedEstimate
"""Reply type of a side."""


def reply_for(*, answer_first: bool, rebut: bool) -> type[Stated]:
    """The reply type of a turn; its fields come in the order in which the prompt asks for them.

    >>> list(reply_for(answer_first=False, rebut=True).model_fields)
    ['arguments', 'rebuttals', 'distribution']
    """
    if answer_first:
        return Prediction if rebut else Estimate
    return ReasonedPrediction if rebut else ReasonedEstimate


@dataclass(frozen=True, slots=True, eq=False)
class SideState:
    """A valid turn of a side.

    Attributes:
        name: the side's full role name, e.g. `agent/1`.
        round: the round of the turn.
        cleaned: the distribution over the case's labels and "(other)".
        arguments, rebuttals: as the side wrote them.
        crit: CRIT score of the turn, in [0, 1]; None if it was not judged, or no judge gave one.
        weak, contradicted: its reasons that the judges found weak, and those contrary to the given facts.
        passed: whether the quality gate lets the others see the arguments.
    """

    name: str
    round: int
    cleaned: CleanedDistribution
    arguments: tuple[str, ...]
    rebuttals: tuple[str, ...] = ()
    crit: float | None = None
    weak: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    passed: bool = True

    @property
    def text(self) -> str:
        """Arguments and rebuttals, one a line."""
        return "\n".join((*self.arguments, *self.rebuttals))

    def shown(self, *, to_others: bool = True, with_text: bool = True) -> dict[str, Any]:
        """Form of the turn in prompts; arguments that did not pass are shown only to their author."""
        label, probability = self.cleaned.top
        withheld = to_others and with_text and not self.passed
        return {
            "name": self.name,
            "round": self.round,
            "answer": label,
            "confidence": f"{probability:.2f}",
            "distribution": in_words(self.cleaned),
            "text": self.text if with_text and not withheld else "",
            "withheld": withheld,
        }

    def document(self, case: Case) -> CritDocument:
        """Document for judges: the turn's own arguments and the case's facts, without what another side said and what
        was retrieved for a second debate.

        That is what the source's final scores read (figure 7.1, step 3). All turns of both debates are read in this one
        way, because scores weigh the sides and are compared from round to round.
        """
        label, _ = self.cleaned.top
        claim = f"The most likely label is {label_in_words(case, label)}."
        choices = [label_in_words(case, each) for each in case.labels or ()] if case.choices else []
        facts = "\n".join(part for part in (case.question, *choices, case.passage) if part)
        return CritDocument(claim=claim, text=self.text, facts=facts, sources=case.documents)


def in_words(cleaned: CleanedDistribution) -> str:
    """A distribution in a line: labels with at least half a per cent, most probable first.

    >>> import numpy as np
    >>> in_words(CleanedDistribution(("Flu", "Cold", "(other)"), np.array([0.25, 0.75, 0.0])))
    'Cold 0.75, Flu 0.25'
    """
    return ", ".join(f"{label} {p:.2f}" for label, p in cleaned.named().items() if p >= _SHOWN_FROM)


def side_state_of(case: Case, number: int, turn: Turn[Stated]) -> SideState:
    """State of a side after a turn."""
    assert case.labels is not None
    return SideState(
        name=turn.role,
        round=number,
        cleaned=clean(turn.reply.distribution, case.labels, case.choices, case.aliases),
        arguments=tuple(turn.reply.arguments),
        rebuttals=tuple(turn.reply.rebuttals) if isinstance(turn.reply, Rebutting) else (),
    )
