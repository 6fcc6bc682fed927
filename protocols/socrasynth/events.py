"""Events of SocraSynth, those after the rounds in `closing_events`, and the payload of its verdict.

Roles are `agent/0` (side A) and `agent/1` (side B). Scores of CRIT and Gamma lie in [0, 1], contentiousness (kappa) in
[0, 1], marks of judges in [0, 10]; None is unknown.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from moot.protocols.events import ContentiousnessSet, DebateEvent, EventData
from moot.protocols.socrasynth.closing_events import (
    AnswerCompared,
    Better,
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
    "Better",
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
    """The topics that were merged into one: tags of proposals (`A2`), or repeated titles."""

    into: str
    sources: list[str] = Field(validation_alias="from", serialization_alias="from")


class SubjectBalance(EventData):
    """Whether a side finds the subject balanced, and why."""

    balanced: bool
    why: str = ""


class TopicsFixed(DebateEvent, strict=False):
    """The list of topics, before the opening; a person may still edit it after a round.

    Attributes:
        proposed, refined: topics by role; a side whose ask failed is left out.
        topics: the final list.
        merged, dropped: merged topics; titles beyond the requested number.
        wanted: requested number of topics.
        by: who decided last: `moderator`, `person`, or `protocol`, which has one topic for a closed list.
        balance: by role, if both sides were asked.
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
    """The answers of both sides on a closed list; labels by role.

    Attributes:
        named: the answers before the debate.
        held: the current answers.
    """

    named: dict[str, str]
    held: dict[str, str] = Field(default_factory=dict)


class PositionsNamed(AnswerPositions, DebateEvent):
    """The first answers of both sides; noted after the opening on a closed list.

    Attributes:
        agreed_at_once: whether both named the same answer.
    """

    kind: ClassVar[str] = "positions"

    agreed_at_once: bool


class SocraSynthContentiousnessSet(ContentiousnessSet):
    """The contentiousness of a round; noted before the round.

    Attributes:
        before: contentiousness of the previous round; None for the opening.
        after: contentiousness of this round.
        schedule: the setting `schedule`.
        why: `opening`, `schedule` or `set by a person`.
    """

    after: float
    why: str


class SocraSynthRoundEnded(DebateEvent):
    """The figures of a round; noted after it was scored.

    Attributes:
        round: 0 for the opening.
        kappa: contentiousness of the round.
        temperature: temperature of the sides' replies; None: that of their roles.
        topics: titles of the topics in this round.
        crit: CRIT score by role.
        gamma: mean of `crit` over both sides; None unless both are known.
        agreement_words: share of agreeing words among agreeing and opposing ones, in [0, 1].
        words: number of words of both sides together.
        finished, conceded: roles that have presented everything; roles that conceded.
        asked: questions of a person that both sides had to answer.
        left_out: by role, titles of the topics without an argument.
        failed: by role, why there is no turn.
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
    """A concession: a side accepts the other's position in this round; noted at the path of its reply."""

    kind: ClassVar[str] = "concession"

    side: Literal["A", "B"]
    round: int


class PersonDecided(DebateEvent):
    """A person's decision on a form; noted at the form's path.

    Attributes:
        action, text: the action and the text that the person gave.
        by: the person.
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
    """The end of the rounds.

    Attributes:
        reason: why the rounds ended; see `moot.protocols.socrasynth.state.Stop`.
        round, kappa: number and contentiousness of the last round.
        gammas: Gamma of each round.
        patience, min_delta, max_rounds: the settings that decided.
        finished: roles that had presented everything in the last round, or conceded.
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
    """The sides' last arguments, by role; both are asked for them unless they said that they had presented everything.

    Attributes:
        round: the last round.
        topics: titles of the topics.
        presented_all: whether the side has presented everything; None if it did not say.
        added: titles of the topics with an added argument.
        passed_over: number of ignored arguments, added although the side had presented everything; empty in older
            records.
        conceded: roles that conceded.
        failed: why there is no reply of a side.
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
        winner: the side with the better closing; None if unknown, and if no side had an own answer left to close for.
        totals, position_bias: see `PanelJudged`; None and empty without a panel.
        topics: titles of the topics.
        conceded: roles that conceded in any round.
        gammas: Gamma of each round.
        joint: the joint proposal; None if A gave no draft.
        positions: the answers of both sides, on a closed list.
        consensus: on a closed list, how both sides reached one answer; None if they did not.
        versus: `winner` of `AnswerCompared`, if configured.
        versus_topics: `by_topic` of `AnswerCompared`, if configured; empty in older records.
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
    versus: Better | None = None
    versus_topics: list[Better | None] = Field(default_factory=list)
