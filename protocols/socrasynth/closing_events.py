"""Events of SocraSynth after the rounds; all its events are imported from `moot.protocols.socrasynth.events`.

Roles are `agent/0` (side A) and `agent/1` (side B). Scores of CRIT and Gamma lie in [0, 1], contentiousness (kappa) in
[0, 1], marks of judges in [0, 10]; None is unknown.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from moot.protocols.events import DebateEvent, EventData


class SidesClosed(DebateEvent):
    """The scores of the closing statements.

    Attributes:
        kappa: contentiousness of the closing statements.
        topics: titles of the topics.
        crit: CRIT score by role.
        crit_by_topic: CRIT scores by role, in the topics' order; empty unless the settings ask for them.
        gamma: mean of `crit` over both sides; None unless both are known.
        agreement_words: share of agreeing words among agreeing and opposing ones, in [0, 1].
        failed: by role, why its last arguments replace its statements.
    """

    kind: ClassVar[str] = "closing"

    kappa: float
    topics: list[str]
    crit: dict[str, float | None]
    crit_by_topic: dict[str, list[float | None]]
    gamma: float | None
    agreement_words: float | None = None
    failed: dict[str, str]


class JointProposal(EventData):
    """A proposal that both sides may support.

    Attributes:
        answer: the label that it names, on a closed list; None on a subject.
        proposal: the points of the proposal; None, in the event, if A gave no draft.
        questions: questions to ask and tests to order.
        drafted_by, amended_by: roles; None if the draft was not amended.
        consents: by role, whether it supports the proposal; None if it did not say.
        reservations: by role, the points that it does not support.
    """

    answer: str | None = None
    proposal: list[str] | None
    questions: list[str] = Field(default_factory=list)
    drafted_by: str | None = None
    amended_by: str | None = None
    consents: dict[str, bool | None] = Field(default_factory=dict)
    reservations: dict[str, list[str]] = Field(default_factory=dict)

    @property
    def consensus(self) -> str | None:
        """Label that it names, if both sides support it."""
        return self.answer if all(self.consents.values()) else None


class ProposalNegotiated(JointProposal, DebateEvent):
    """The negotiated joint proposal, or why A gave no draft.

    Attributes:
        kappa: the contentiousness of the negotiation.
        failed: by role, why there is no reply.
    """

    kind: ClassVar[str] = "joint"

    kappa: float
    failed: dict[str, str]


class SideTotals(EventData):
    """Marks of A and B, summed over topics."""

    A: float | None
    B: float | None


class MissingMarks(EventData):
    """A missing judgment and the reason; topics count from 1."""

    topic: int
    why: str


class RepairedMarks(EventData):
    """Marks of a judgment that were not written as numbers, such as `first: 8/10`; topics count from 1."""

    topic: int
    marks: list[str]


class JudgeScoreSheet(EventData):
    """One judge's marks in one order.

    Attributes:
        order: 1: A first and B second; 2: the reverse.
        judge: the judge's full role name.
        scores: per topic a pair of marks, A's and B's, in either order; None for a missing judgment, which is not a
            mark of 0.
        totals: sums over the judged topics.
        winner: `A`, `B` or `tie`, by `totals`.
        rationales: one per topic; empty if there is none.
        overall: one rationale for all topics; empty if each topic has its own.
        missing, repairs: missing judgments; judgments whose marks were repaired.
    """

    order: Literal[1, 2]
    judge: str
    scores: list[Annotated[list[float], Field(min_length=2, max_length=2)] | None]
    totals: SideTotals
    winner: str | None
    rationales: list[str]
    overall: str = ""
    missing: list[MissingMarks]
    repairs: list[RepairedMarks] = Field(default_factory=list)


class PanelJudged(DebateEvent):
    """The panel's marks for the closing statements.

    Attributes:
        topics: titles of the topics.
        orders: every judge's marks in both orders.
        winner: `A`, `B` or `tie`, by `totals`; None without any complete pair of orders.
        totals: means over judges and orders, of the topics that a judge marked in both orders.
        position_bias: by judge, the advantage of the first position, in marks.
        missing: number of missing judgments.
        models: model by judge.
        not_independent: judges whose model also debated.
    """

    kind: ClassVar[str] = "panel"

    topics: list[str]
    orders: list[JudgeScoreSheet]
    winner: str | None
    totals: SideTotals
    position_bias: dict[str, float | None]
    missing: int
    models: dict[str, str]
    not_independent: list[str]


Better = Literal["debate", "answer", "tie"]
"""Outcome of a comparison of a debate with a single answer."""


class AnswerCompared(DebateEvent):
    """A blind comparison of the debate's arguments (A) with a model's single answer (B).

    Attributes:
        winner: by `totals`; None if unknown.
        why: why there is no comparison; empty if there is one.
        topics: titles of the topics; empty in older records, which compared the joint proposal with the answer once.
        by_topic: winner on each topic; None if unknown.
        words: number of words of `debate` and `answer`.
        answer: the points of the single answer.
        orders, totals, position_bias, missing: see `PanelJudged`.
    """

    kind: ClassVar[str] = "versus"

    winner: Better | None
    why: str = ""
    topics: list[str] = Field(default_factory=list)
    by_topic: list[Better | None] = Field(default_factory=list)
    words: dict[str, int] = Field(default_factory=dict)
    answer: list[str] = Field(default_factory=list)
    orders: list[JudgeScoreSheet] = Field(default_factory=list)
    totals: SideTotals | None = None
    position_bias: dict[str, float | None] = Field(default_factory=dict)
    missing: int | None = None
