"""What SocraSynth records after the rounds; all its events are imported from `moot.protocols.socrasynth.events`.

Roles are `agent/0` (side A) and `agent/1` (side B). Scores of CRIT and Gamma lie in [0, 1], contentiousness (kappa) in
[0, 1], marks of judges in [0, 10]; None is unknown.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from moot.protocols.events import DebateEvent, EventData


class SidesClosed(DebateEvent):
    """The closing statements are given and scored.

    Attributes:
        kappa: their contentiousness.
        topics: titles.
        crit: by role.
        crit_by_topic: by role, in the topics' order; empty unless that is asked for.
        gamma: mean of `crit` over both sides; None unless both are known.
        agreement_words: agreeing words over agreeing and opposing ones, in [0, 1].
        failed: by role, why its last arguments stand in for its statements.
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
    """A proposal for whoever has to decide, that both sides may stand behind.

    Attributes:
        answer: on a closed list, the label that it names; None on a subject.
        proposal: what is proposed; None, in the event, where A gave no draft.
        questions: what should be found out next: questions to ask, tests to order.
        drafted_by, amended_by: roles; None where nobody has amended the draft.
        consents: by role whether it stands behind these points; None when it did not say.
        reservations: by role, what it does not agree with.
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
        """The label that it names, if both sides stand behind it."""
        return self.answer if all(self.consents.values()) else None


class ProposalNegotiated(JointProposal, DebateEvent):
    """The sides have negotiated a joint proposal, or A gave no draft.

    Attributes:
        kappa: the contentiousness of the negotiation.
        failed: by role, why nothing came from it.
    """

    kind: ClassVar[str] = "joint"

    kappa: float
    failed: dict[str, str]


class SideTotals(EventData):
    """Marks of A and B, summed over topics."""

    A: float | None
    B: float | None


class MissingMarks(EventData):
    """A judgment that did not come, and why; topics are counted from 1."""

    topic: int
    why: str


class RepairedMarks(EventData):
    """The marks of a judgment that were not written as numbers, e.g. `first: 8/10`; topics are counted from 1."""

    topic: int
    marks: list[str]


class JudgeScoreSheet(EventData):
    """One judge's marks in one order.

    Attributes:
        order: 1: A comes first and B second; 2: swapped.
        judge: its full role name.
        scores: per topic a pair, A's and B's, whoever came first; None for a missing judgment, which is no mark of 0.
        totals: sums over the topics that were judged.
        winner: `A`, `B` or `tie`, by `totals`.
        rationales: one per topic; empty where there is none.
        overall: one rationale for all of it; empty where each topic has its own.
        missing, repairs: judgments that did not come, and those that had to be read with care.
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
    """The panel has judged the closing statements.

    Attributes:
        topics: titles.
        orders: every judge's marks in both orders.
        winner: `A`, `B` or `tie`, by `totals`; None without any complete pair of orders.
        totals: means per judge and order, over topics that a judge marked in both orders.
        position_bias: by judge, what coming first is worth, in marks.
        missing: how many judgments did not come.
        models: by judge.
        not_independent: judges on a model that also debated.
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


class AnswerCompared(DebateEvent):
    """The judges have compared the debate's proposal (A) with a model's single answer (B), blind.

    Attributes:
        winner: `debate`, `answer` or `tie`; None when unknown.
        why: what kept them from comparing; empty where nothing did.
        words: lengths of `debate` and `answer`.
        answer: the points of the single answer.
        orders, totals, position_bias, missing: see `PanelJudged`.
    """

    kind: ClassVar[str] = "versus"

    winner: str | None
    why: str = ""
    words: dict[str, int] = Field(default_factory=dict)
    answer: list[str] = Field(default_factory=list)
    orders: list[JudgeScoreSheet] = Field(default_factory=list)
    totals: SideTotals | None = None
    position_bias: dict[str, float | None] = Field(default_factory=dict)
    missing: int | None = None
