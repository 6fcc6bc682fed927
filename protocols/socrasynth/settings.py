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
        count: number of topics that the moderator chooses; fewer if it finds no more.
        proposed: number of topics that each side proposes.
        ask_balance: first ask both sides whether the subject is balanced (the source's appendix 6.B, step 2); the
            verdict has the flag `subject-unbalanced` if one says no.
    """

    count: int = Field(default=5, ge=1, le=20)
    proposed: int = Field(default=5, ge=1, le=20)
    ask_balance: bool = False


class SocraSynthContentiousnessSettings(Settings):
    """The contentiousness.

    Attributes:
        start: contentiousness of the opening; with `schedule=fixed` also in all rounds and in the closing statements.
        delta: divisor by which the geometric schedule lowers contentiousness after each round, at least 1 (the source's
            delta).
    """

    start: Share = START
    delta: float = Field(default=DELTA, ge=1.0, le=100.0, allow_inf_nan=False)


class SocraSynthSettings(Settings):
    """All settings of SocraSynth.

    Attributes:
        kappa: where contentiousness starts, and what it is divided by.
        openings: `blind`: both at the same time, without seeing the other's; `answered`: B sees A's and answers it (the
            source's printed transcripts). On a closed list they are always blind: each side names its own answer.
        schedule: how contentiousness falls from `kappa.start`: `geometric` divides it while it is above 0.1 (twelve
            rounds from 0.9 by 1.2), `three-phase` has 0.7, 0.5 and 0.1, `two-phase` keeps the level in the rounds and
            has 0.3 after them, and `fixed` keeps it throughout.
        max_rounds: maximum number of refutation rounds after the opening; 0: closing statements follow the opening.
        patience: stop after this number of rounds without a rise of Gamma, the panel's mean over both sides.
        min_delta: the smallest rise of Gamma that counts; Gamma is in [0, 1].
        temperature: None: each side uses the decoding of its role. With a number T, the sides are asked at temperature
            T x contentiousness, with top-p 0.9 and `max_tokens`, so that contentious rounds are sampled more freely.
        max_tokens: length of the longest reply, unless a role sets another and `temperature` is None.
        crit: how judges read and score arguments after each round.
        crit_scope: the text of a side, and of the opposing side, that CRIT reads after a round: `latest`: the turns of
            that round; `whole`: all turns so far (the source's pseudo-code).
        crit_topics: also score the closing statements topic by topic.
        panel: what a judge marks in one call: `topics`: the closing statements on one topic, with a rationale; `whole`:
            all closing statements. With `whole` the judge first names the claim and both sides' arguments, and ends
            with an overall rationale (the source's appendix 6.D).
        versus_qa: judges also compare the debate's proposal with a single answer of agent 0's model, blind.
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
