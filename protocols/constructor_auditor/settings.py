"""The settings of constructor-auditor: one frozen tree."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from moot.protocols.settings import Settings


class JudgeSettings(Settings):
    """The judges of the reasoning (the meta-evaluator).

    Attributes:
        when: `always` or `never`; with `never` no judge is asked.
        passes: how often every judge scores each reply; one pass is at temperature 0, several are at the role's
            temperature.
    """

    when: Literal["always", "never"] = "always"
    passes: int = Field(default=1, ge=1, le=20)


class ConstructorAuditorSettings(Settings):
    """All settings of constructor-auditor.

    Attributes:
        judge: how the reasoning is judged.
        logprobs: ask for the token log-probabilities of the constructor and the auditor, and refuse models without
            them.
        sections: whether the two write labelled sections: `by-domain`, as in the sources: in all domains except rubric
            scoring ("Early-Token Confidence": with a label first, the first tokens measure the label); `always`, which
            is "The Confident Liar" in rubric scoring, too; or `never`.
        answer_first: whether, in mathematics, the two state their result before its derivation.
        passages: in factual QA without a passage, the number of the case's documents, and the number of passages of the
            run's library, that the debate gets; 0 for none.
    """

    judge: JudgeSettings = JudgeSettings()
    logprobs: bool = True
    sections: Literal["by-domain", "always", "never"] = "by-domain"
    answer_first: bool = False
    passages: int = Field(default=3, ge=0, le=20)
