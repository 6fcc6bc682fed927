"""What SocraSynth records: its events, those after the rounds in `closing_events`, and the payload of its verdict.

Roles are `agent/0` (side A) and `agent/1` (side B). Scores of CRIT and Gamma lie in [0, 1], contentiousness (kappa) in
[0, 1], marks of judges in [0, 10]; None is unknown.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from moot.protocols.events import ContentiousnessSet, DebateEvent, EventData
from moot.protocols.socrasynth.closing_events import (
    AnswerCompared,
    JointProposal,
    JudgeScoreSheet,
    MissingMarks,
    PanelJudged,
    ProposalNegotiated,
    RepairedMarks,
    SidesClosed,
    SideTotals,
)
from moot.protocols.socrasynth.sides import Topic

__all__ = [
    "AnswerCompared",
    "AnswerPositions",
    "JointProposal",
    "JudgeScoreSheet",
    "LastWordsGiven",
    "MissingMarks",
    "PanelJudged",
    "PersonDecided",
    "PositionsNamed",
    "ProposalNegotiated",
    "RepairedMarks",
    "SideConceded",
    "SideTotals",
    "SidesClosed",
    "SocraSynthContentiousnessSet",
    "SocraSynthPayload",
    "SocraSynthRoundEnded",
    "SocraSynthStopped",
    "SubjectBalance",
    "TopicMerge",
    "TopicsFixed",
]


class TopicMerge(EventData):
    """What was merged into a topic: tags of proposals (`A2`), or repeated titles."""

    into: str
    sources: list[str] = Field(validation_alias="from", serialization_alias="from")


class SubjectBalance(EventData):
    """Whether a side finds the subject balanced, and why."""

    balanced: bool
    why: str = ""


class TopicsFixed(DebateEvent, strict=False):
    """The topics are fixed, before the opening; a person may still edit them after a round.

    Attributes:
        proposed, refined: topics by role; a side whose ask failed is left out.
        topics: the list.
        merged, dropped: what was merged; titles beyond those that were asked for.
        wanted: how many were asked for.
        by: who had the last word: `moderator`, `person`, or `protocol`, which has one topic for a closed list.
        balance: by role, where that is asked.
    """

    kind: ClassVar[str] = "topics"

    proposed: dict[str, list[Topic]]
    refined: dict[str, list[Topic]]
    topics: list[Topic]
    merged: list[TopicMerge]
    dropped: list[str]
    wanted: int
    by: str
    balance: dict[str, SubjectBalance] = Field(default_factory=dict)


class AnswerPositions(EventData):
    """On a closed list, the answers of both sides; labels by role.

    Attributes:
        named: before they had heard each other.
        held: now.
    """

    named: dict[str, str]
    held: dict[str, str] = Field(default_factory=dict)


class PositionsNamed(AnswerPositions, DebateEvent):
    """Both sides have named their answers; after the opening on a closed list.

    Attributes:
        agreed_at_once: whether both named the same one.
    """

    kind: ClassVar[str] = "positions"

    agreed_at_once: bool


class SocraSynthContentiousnessSet(ContentiousnessSet):
    """The contentiousness of a round is set, before the round.

    Attributes:
        before: that of the round before; None for the opening.
        after: that of this round.
        schedule: the setting of that name.
        why: `opening`, `schedule` or `set by a person`.
    """

    after: float
    why: str


class SocraSynthRoundEnded(DebateEvent):
    """A round is over and scored.

    Attributes:
        round: 0 for the opening.
        kappa: its contentiousness.
        temperature: of the sides' replies; None leaves it to their roles.
        topics: titles, as they stood then.
        crit: by role.
        gamma: mean of `crit` over both sides; None unless both are known.
        agreement_words: agreeing words over agreeing and opposing ones, in [0, 1].
        words: of both sides together.
        finished, conceded: roles.
        asked: questions of a person that both sides had to answer.
        left_out: by role, titles of the topics that it passed over.
        failed: by role, why nothing came from it.
    """

    kind: ClassVar[str] = "round"

    round: int
    kappa: float
    temperature: float | None = None
    topics: list[str]
    crit: dict[str, float | None]
    gamma: float | None
    agreement_words: float | None = None
    words: int | None = None
    finished: list[str]
    conceded: list[str]
    asked: list[str]
    left_out: dict[str, list[str]]
    failed: dict[str, str]


class SideConceded(DebateEvent):
    """A side takes the other to be right, in this round; noted at the path of its reply."""

    kind: ClassVar[str] = "concession"

    side: Literal["A", "B"]
    round: int


class PersonDecided(DebateEvent):
    """A person has decided something on a form; noted at the form's path.

    Attributes:
        action, text: as they gave them.
        by: who.
        outcome: `Done: ...`, or `Not used: ...` with the reason.
    """

    kind: ClassVar[str] = "moderation"

    path: str = Field(default="", exclude=True, pattern=r"^moderation/(topics|round/\d+)(/\d+)?$")
    action: str
    text: str
    by: str = ""
    outcome: str

    @property
    def used(self) -> bool:
        """Whether it changed anything; a text that could not be used did not."""
        return self.outcome.startswith("Done")


class SocraSynthStopped(DebateEvent):
    """The rounds have ended.

    Attributes:
        reason: see `moot.protocols.socrasynth.state.Stop`.
        round, kappa: of the last round.
        gammas: one per round.
        patience, min_delta, max_rounds: the settings that it was decided by.
        finished: roles that had no more to say in the last round, or conceded.
        conceded: roles that conceded in any round.
    """

    kind: ClassVar[str] = "stop"

    reason: str
    round: int
    kappa: float | None = None
    gammas: list[float | None]
    patience: int
    min_delta: float
    max_rounds: int
    finished: list[str] = Field(default_factory=list)
    conceded: list[str] = Field(default_factory=list)


class LastWordsGiven(DebateEvent):
    """Both sides were asked whether that was all, after rounds that ended without their saying so; by role.

    Attributes:
        round: the last one.
        topics: titles.
        presented_all: None for a side that did not say.
        added: titles of the topics that it added an argument on.
        passed_over: how many arguments it added although it had presented all; of older records none are known.
        conceded: roles.
        failed: why nothing came from a side.
    """

    kind: ClassVar[str] = "confirm"

    round: int
    topics: list[str]
    presented_all: dict[str, bool | None]
    added: dict[str, list[str]]
    passed_over: dict[str, int] = Field(default_factory=dict)
    conceded: list[str]
    failed: dict[str, str]


class SocraSynthPayload(EventData):
    """The payload of a verdict.

    Attributes:
        winner: who closed better; None when unknown, and where no side had an answer of its own left to close for.
        totals, position_bias: see `PanelJudged`; None and empty where no panel judged.
        topics: titles.
        conceded: roles that conceded in any round.
        gammas: one per round.
        joint: the joint proposal; None when A gave no draft.
        positions: on a closed list.
        consensus: on a closed list, how both sides came to one answer; None where they did not.
        versus: `winner` of `AnswerCompared`, where configured.
    """

    winner: Literal["For", "Against", "Tie"] | None
    totals: SideTotals | None = None
    position_bias: dict[str, float | None]
    topics: list[str] = Field(default_factory=list)
    conceded: list[str] = Field(default_factory=list)
    gammas: list[float | None] = Field(default_factory=list)
    joint: JointProposal | None
    positions: AnswerPositions | None = None
    consensus: Literal["at once", "concession", "proposal"] | None = None
    versus: str | None = None
