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
    """

    judge: JudgeSettings = JudgeSettings()
    logprobs: bool = True
