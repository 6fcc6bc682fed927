"""Where a side stands: its last distribution with its arguments, and what the judges made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, field_validator

from moot.protocols.case import Case, label_in_words
from moot.protocols.crit.document import Document
from moot.protocols.distribution import Cleaned, Predicted, clean
from moot.protocols.messages import Turn
from moot.protocols.reply_limits import longest, most

_SHOWN_FROM = 0.005


Sentence = Annotated[str, Field(json_schema_extra=longest(240))]


class Prediction(Predicted):
    """What a side replies: probabilities of the likeliest labels, arguments for them, and answers to the others."""

    arguments: list[Sentence] = Field(min_length=1, max_length=50, json_schema_extra=most(4))
    rebuttals: list[Sentence] = Field(default=[], max_length=50, json_schema_extra=most(3))

    @field_validator("arguments", "rebuttals", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("arguments", "rebuttals")
    @classmethod
    def _without_blanks(cls, value: list[str]) -> list[str]:
        return [text.strip() for text in value if text.strip()]

    @field_validator("arguments")
    @classmethod
    def _some(cls, value: list[str]) -> list[str]:
        if not value:
            raise ValueError("no argument is given")
        return value


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """A side's last valid turn.

    Attributes:
        name: the side's full role name, e.g. `agent/1`.
        round: the round in which it was said.
        cleaned: the distribution over the case's labels and "(other)".
        arguments, rebuttals: as the side wrote them.
        opposing: the others' arguments that it had been shown when it was spoken.
        crit: CRIT score of the turn, in [0, 1]; None when nobody read it, or no judge gave one.
        weak: arguments that the judges found weakest.
        passed: whether the quality gate lets the others see the arguments.
    """

    name: str
    round: int
    cleaned: Cleaned
    arguments: tuple[str, ...]
    rebuttals: tuple[str, ...] = ()
    opposing: str = ""
    crit: float | None = None
    weak: tuple[str, ...] = ()
    passed: bool = True

    @property
    def text(self) -> str:
        """Arguments and rebuttals, one a line."""
        return "\n".join((*self.arguments, *self.rebuttals))

    def shown(self, *, to_others: bool = True, with_text: bool = True) -> dict[str, Any]:
        """The turn as a prompt takes it; arguments that did not pass are shown to their author only."""
        label, probability = self.cleaned.top
        withheld = to_others and not self.passed
        return {
            "name": self.name,
            "round": self.round,
            "answer": label,
            "confidence": f"{probability:.2f}",
            "distribution": in_words(self.cleaned),
            "text": self.text if with_text and not withheld else "",
            "withheld": withheld,
        }

    def document(self, case: Case, evidence: tuple[str, ...]) -> Document:
        """The turn as judges read it: against what is given, and what the others had said when it was spoken."""
        label, _ = self.cleaned.top
        claim = f"The most likely label is {label_in_words(case, label)}."
        choices = [label_in_words(case, each) for each in case.labels or ()] if case.choices else []
        facts = "\n".join(part for part in (case.question, *choices, case.passage, *evidence) if part)
        return Document(claim=claim, text=self.text, facts=facts, opposing=self.opposing, sources=case.documents)


def in_words(cleaned: Cleaned) -> str:
    """A distribution in a line: labels with at least half a per cent, likeliest first.

    >>> import numpy as np
    >>> in_words(Cleaned(("Flu", "Cold", "(other)"), np.array([0.25, 0.75, 0.0])))
    'Cold 0.75, Flu 0.25'
    """
    return ", ".join(f"{label} {p:.2f}" for label, p in cleaned.named().items() if p >= _SHOWN_FROM)


def standing_of(case: Case, number: int, turn: Turn[Prediction], opposing: str = "") -> Standing:
    """The standing that a turn expresses; `opposing` is what its side had been shown."""
    assert case.labels is not None
    cleaned = clean(turn.reply.distribution, case.labels, case.choices, case.aliases)
    return Standing(turn.role, number, cleaned, tuple(turn.reply.arguments), tuple(turn.reply.rebuttals), opposing)
