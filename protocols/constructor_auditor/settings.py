"""The settings of constructor-auditor: one frozen tree."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from moot.protocols.settings import Settings


class JudgeSettings(Settings):
    """The judges of the reasoning (the meta-evaluator).

    Attributes:
        when: `never` leaves the reasoning unjudged: no judge is asked.
        passes: how often every judge judges each reply; one pass is at temperature 0, several at the role's own.
    """

    when: Literal["always", "never"] = "always"
    passes: int = Field(default=1, ge=1, le=20)


class ConstructorAuditorSettings(Settings):
    """All settings of constructor-auditor.

    Attributes:
        judge: how the reasoning is judged.
        logprobs: ask for the token log-probabilities of the constructor and the auditor, and refuse models without.
        sections: whether the two write labelled sections: `by-domain` as in the sources, which is everywhere but in
            rubric scoring ("Early-Token Confidence": with a label first, the first tokens measure the label);
            `always`, which is "The Confident Liar" in rubric scoring, too; or `never`.
        answer_first: whether, in mathematics, the two state what they found before the working that leads to it.
        passages: in factual QA without a passage, how many of the case's documents, and how many passages of the run's
            library, the debate is given; 0 for none.
    """

    judge: JudgeSettings = JudgeSettings()
    logprobs: bool = True
    sections: Literal["by-domain", "always", "never"] = "by-domain"
    answer_first: bool = False
    passages: int = Field(default=3, ge=0, le=20)
