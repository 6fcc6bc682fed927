"""The settings of SocraSynth: one frozen tree."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from moot.protocols.contentiousness import START
from moot.protocols.crit.settings import CritSettings
from moot.protocols.settings import Settings, Share
from moot.protocols.socrasynth.schedule import DELTA, Schedule


def _role_is_none(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() in {"none", "null", "role"} else value


class TopicSettings(Settings):
    """What is debated.

    Attributes:
        count: how many topics the moderator fixes; fewer when it finds no more.
        proposed: how many each side proposes.
        ask_balance: ask both sides first whether the subject is balanced (the source's appendix 6.B, step 2); the
            verdict is flagged `subject-unbalanced` if one says no.
    """

    count: int = Field(default=5, ge=1, le=20)
    proposed: int = Field(default=5, ge=1, le=20)
    ask_balance: bool = False


class SocraSynthContentiousnessSettings(Settings):
    """The contentiousness.

    Attributes:
        start: contentiousness of the opening; with `schedule=fixed` also in all rounds and in the closing statements.
        delta: what the geometric schedule divides contentiousness by after each round, at least 1 (the source's delta).
    """

    start: Share = START
    delta: float = Field(default=DELTA, ge=1.0, le=100.0, allow_inf_nan=False)


class SocraSynthSettings(Settings):
    """All settings of SocraSynth.

    Attributes:
        kappa: where contentiousness starts, and what it is divided by.
        openings: `blind`: both at once, neither has seen the other's; `answered`: B has seen A's and answers it (the
            source's printed transcripts). On a closed list they are always blind: each side names its own answer.
        schedule: how contentiousness falls from `kappa.start`: `geometric` divides it while it is above 0.1 (twelve
            rounds from 0.9 by 1.2), `three-phase` has 0.7, 0.5 and 0.1, `two-phase` keeps the level in the rounds and
            has 0.3 after them, and `fixed` keeps it throughout.
        max_rounds: refutation rounds at most, after the opening; 0: closing statements follow the opening.
        patience: stop after so many rounds without a rise of Gamma, the panel's mean over both sides.
        min_delta: the least rise of Gamma, which lies in [0, 1], that counts.
        temperature: None leaves to each side the decoding of its role. A number T has the sides asked at
            temperature T x contentiousness, with top-p 0.9 and `max_tokens`: heated rounds are sampled more freely.
        max_tokens: the longest reply, unless a role says otherwise and `temperature` is None.
        crit: how arguments are read and scored after each round.
        crit_scope: what CRIT reads of a side after a round, and of the other as opposing it: `latest`: what it said in
            that round; `whole`: all that it has said so far (the source's pseudo-code).
        crit_topics: score the closing statements topic by topic, too.
        panel: what a judge marks at once: `topics`: the closing statements on one topic, with a rationale for each;
            `whole`: all of them; it first names the claim and both sides' arguments, and ends with an overall rationale
            (the source's appendix 6.D).
        versus_qa: have the judges compare what the debate gave with a single answer of agent 0's model, blind.
    """

    topics: TopicSettings = TopicSettings()
    kappa: SocraSynthContentiousnessSettings = SocraSynthContentiousnessSettings()
    openings: Literal["blind", "answered"] = "blind"
    schedule: Schedule = "geometric"
    max_rounds: int = Field(default=5, ge=0, le=50)
    patience: int = Field(default=2, ge=1, le=50)
    min_delta: float = Field(default=0.01, ge=0.0, le=1.0, allow_inf_nan=False)
    temperature: Annotated[
        Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)] | None, BeforeValidator(_role_is_none)
    ] = None
    max_tokens: int = Field(default=2000, ge=1)
    crit: CritSettings = CritSettings()
    crit_scope: Literal["latest", "whole"] = "latest"
    crit_topics: bool = False
    panel: Literal["topics", "whole"] = "topics"
    versus_qa: bool = False
