"""The settings of SocraSynth: one frozen tree."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from moot.protocols.contentiousness import START
from moot.protocols.crit.settings import CritSettings
from moot.protocols.deprecated import deprecated_values
from moot.protocols.settings import Settings, Share
from moot.protocols.socrasynth.schedule import DELTA, RENAMED, Schedule


def _none_in_words(value: object) -> object:
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
        start: contentiousness of the opening; with `schedule=fixed` also in all rounds.
        delta: divisor by which the geometric schedule lowers contentiousness after each round, at least 1 (the source's
            delta).
        closing: contentiousness of the closing statements, which the panel judges. None: the level from which the
            rounds fell, which is `start`, or the one that a person set last. The joint proposal is always at 0.3.
    """

    start: Share = START
    delta: float = Field(default=DELTA, ge=1.0, le=100.0, allow_inf_nan=False)
    closing: Annotated[Share | None, BeforeValidator(_none_in_words)] = None


class SocraSynthSettings(Settings):
    """All settings of SocraSynth.

    Attributes:
        kappa: where contentiousness starts, what it is divided by, and what it is in the closing statements.
        openings: `blind`: both at the same time, without seeing the other's; `answered`: B sees A's and answers it (the
            source's printed transcripts). On a closed list they are always blind: each side names its own answer.
        schedule: how contentiousness falls from `kappa.start`: `geometric` divides it while it is above 0.1 (twelve
            rounds from 0.9 by 1.2), `three-phase` has 0.7, 0.5 and 0.1, `fixed` keeps the level in all rounds. The old
            name `two-phase` means `fixed`.
        max_rounds: maximum number of refutation rounds after the opening; 0: closing statements follow the opening.
        patience: stop after this number of rounds without a rise of Gamma, the panel's mean over both sides.
        min_delta: the smallest rise of Gamma that counts; Gamma is in [0, 1].
        temperature: None: each side uses the decoding of its role. With a number T, the sides are asked at temperature
            T x contentiousness, with top-p 0.9 and `max_tokens`, so that contentious rounds are sampled more freely.
        max_tokens: length of the longest reply, unless a role sets another and `temperature` is None.
        crit: how judges read and score arguments after each round.
        crit_scope: the text of a side that CRIT reads after a round: `latest`: its turn of that round, against the
            opponent's last turn before it; `whole`: all its turns so far (the source's pseudo-code), against the
            opponent's turns before the last of them.
        crit_topics: also score the closing statements topic by topic.
        panel: what a judge marks in one call: `topics`: the closing statements on one topic, with a rationale; `whole`:
            all closing statements. With `whole` the judge first names the claim and both sides' arguments, and ends
            with an overall rationale (the source's appendix 6.D). The comparison of `versus_qa` is marked likewise.
        versus_qa: judges also compare the debate's arguments with a single answer of agent 0's model, topic by topic
            and blind. The model does not know the topics.
    """

    topics: TopicSettings = TopicSettings()
    kappa: SocraSynthContentiousnessSettings = SocraSynthContentiousnessSettings()
    openings: Literal["blind", "answered"] = "blind"
    schedule: Annotated[Schedule, BeforeValidator(deprecated_values("schedule", RENAMED))] = "geometric"
    max_rounds: int = Field(default=5, ge=0, le=50)
    patience: int = Field(default=2, ge=1, le=50)
    min_delta: float = Field(default=0.01, ge=0.0, le=1.0, allow_inf_nan=False)
    temperature: Annotated[
        Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)] | None, BeforeValidator(_none_in_words)
    ] = None
    max_tokens: int = Field(default=2000, ge=1)
    crit: CritSettings = CritSettings()
    crit_scope: Literal["latest", "whole"] = "latest"
    crit_topics: bool = False
    panel: Literal["topics", "whole"] = "topics"
    versus_qa: bool = False
