"""The parts of a document."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.rounds.round_trace import RoundTrace
from moot.deploy.results.transcripts.views import AttemptCost, State, VerdictView

Letter = Literal["A", "B"]


class PositionsView(FrozenModel):
    """On a closed list, the answers that both sides named before they had heard each other; labels by role."""

    named: dict[str, str]
    agreed_at_once: bool


class TopicView(FrozenModel):
    """A topic as it was fixed."""

    title: str
    description: str = ""


class MergeView(FrozenModel):
    """What was merged into a topic: numbers of proposals (`A2`), or repeated titles."""

    into: str
    sources: list[str] = Field(validation_alias=AliasChoices("from", "sources"))


class BalanceView(FrozenModel):
    """Whether a side finds the subject balanced."""

    balanced: bool
    why: str = ""


class AgendaView(FrozenModel):
    """How the topics came about; `wanted` is how many were asked for, `by` who had the last word before the opening."""

    proposed: dict[str, list[TopicView]]
    refined: dict[str, list[TopicView]]
    topics: list[TopicView]
    merged: list[MergeView]
    dropped: list[str]
    wanted: int
    by: str
    balance: dict[str, BalanceView] = Field(default_factory=dict)


class ArgumentView(FrozenModel):
    """An argument.

    Attributes:
        round: None for a closing statement.
        last_word: whether it was added after the last round.
        mended: whether the JSON of the reply that it stands in had to be mended to be read.
    """

    round: int | None
    last_word: bool = False
    side: Letter
    topic: str
    text: str
    mended: bool


class RoundView(FrozenModel):
    """A round in figures; scores lie in [0, 1], None is unknown.

    Attributes:
        kappa: its contentiousness.
        temperature: of the sides' replies; None leaves it to their roles.
        topics: titles, as they stood then.
        crit: by role.
        gamma: the panel's mean over both sides.
        finished, conceded: roles.
        asked: questions of the moderator's that both sides had to answer.
        left_out: by role, topics that it passed over.
        failed: by role, why nothing came from it.
    """

    round: int
    kappa: float
    temperature: float | None = None
    topics: list[str]
    crit: dict[str, float | None]
    gamma: float | None
    finished: list[str]
    conceded: list[str]
    asked: list[str]
    left_out: dict[str, list[str]]
    failed: dict[str, str]


class ConfirmView(FrozenModel):
    """What both sides said after the last round, asked whether that was all; by role.

    Attributes:
        round: the last one.
        presented_all: None for a side that did not say.
        added: titles of the topics that it added an argument on.
        passed_over: how many arguments it added although it had presented all; of older records none are known.
    """

    round: int
    topics: list[str]
    presented_all: dict[str, bool | None]
    added: dict[str, list[str]]
    passed_over: dict[str, int] = Field(default_factory=dict)
    conceded: list[str]
    failed: dict[str, str]


class ClosingView(FrozenModel):
    """The closing statements in figures; `crit_by_topic` is empty unless it was asked for."""

    kappa: float
    topics: list[str]
    crit: dict[str, float | None]
    crit_by_topic: dict[str, list[float | None]]
    gamma: float | None
    failed: dict[str, str]


class JointView(FrozenModel):
    """The joint proposal; `proposal` is None when there is none, a consent None when that side did not say.

    `answer` is the label that it names on a closed list.
    """

    kappa: float
    answer: str | None = None
    proposal: list[str] | None
    questions: list[str] = Field(default_factory=list)
    amended_by: str | None = None
    consents: dict[str, bool | None] = Field(default_factory=dict)
    reservations: dict[str, list[str]] = Field(default_factory=dict)
    failed: dict[str, str]


class MissingView(FrozenModel):
    """A judgment that did not come; topics are counted from 1."""

    topic: int
    why: str


class RepairsView(FrozenModel):
    """A judgment whose marks were not written as numbers, and how they were; topics are counted from 1."""

    topic: int
    marks: list[str]


class TotalsView(FrozenModel):
    """Marks of both sides; None when unknown."""

    A: float | None
    B: float | None


class ScoreSheetView(FrozenModel):
    """One judge's marks in one order: 1 with A first, 2 with B first. Pairs are A's and B's, whoever came first."""

    order: Literal[1, 2]
    judge: str
    scores: list[tuple[float, float] | None]
    totals: TotalsView
    winner: str | None
    rationales: list[str]
    overall: str = ""
    missing: list[MissingView]
    repairs: list[RepairsView] = Field(default_factory=list)


class PanelView(FrozenModel):
    """What the panel found; `totals` are means per judge and order over topics that were judged in both orders."""

    topics: list[str]
    orders: list[ScoreSheetView]
    winner: str | None
    totals: TotalsView
    position_bias: dict[str, float | None]
    missing: int
    models: dict[str, str]
    not_independent: list[str]


class VersusView(FrozenModel):
    """The debate's proposal (A) against a single answer (B); `why` says what was missing."""

    winner: str | None
    why: str = ""
    words: dict[str, int] = Field(default_factory=dict)
    answer: list[str] = Field(default_factory=list)
    orders: list[ScoreSheetView] = Field(default_factory=list)
    position_bias: dict[str, float | None] = Field(default_factory=dict)


class ModerationView(FrozenModel):
    """Something that a person did, and what came of it."""

    path: str = Field(pattern=r"^moderation/(topics|round/\d+)(/\d+)?$")
    action: str
    text: str
    outcome: str

    @property
    def used(self) -> bool:
        """Whether it changed anything; a text that could not be used did not."""
        return self.outcome.startswith("Done")


class StopView(FrozenModel):
    """Why the rounds ended."""

    reason: str
    round: int
    gammas: list[float | None]
    patience: int
    min_delta: float
    max_rounds: int


class FailureView(FrozenModel):
    """An ask without a usable reply."""

    path: str
    role: str
    failure: str
    error: str


class DebateDocument(FrozenModel):
    """One debate on a subject.

    Attributes:
        state: how far it is.
        open_answers: the list that the sides chose their answers from; empty where they argue for and against.
        positions: which they named; None where they argue for and against, and in records from before that was kept.
        facts: what is given; may be empty.
        gold: the label that the task's file calls right, never shown to a model; None without one.
        verdict: None while there is none; so for `stop`, `closing`, `joint`, `panel`. `versus` is None unless compared,
            `confirmed` unless both sides were asked whether that was all.
        topics: as they stood in the end, numbered as the panel does.
        dropped_topics: those that a person took off the list.
        topics_by: who had the last word on them: the moderator, which is a model, a person, or the protocol, which has
            one topic for a closed list.
        trace: the numbers of its rounds; None while there are none.
        arguments: everything said, by round, A before B, last words and closing statements at the end.
        failures: asks without a usable reply.
    """

    schema_version: int
    run: str
    simulated: bool
    case_id: str
    attempt: int
    attempts: list[int]
    state: State
    subject: str
    labels: list[str]
    open_answers: list[str]
    positions: PositionsView | None
    facts: str
    gold: str | None
    verdict: VerdictView | None
    agenda: AgendaView
    topics: list[TopicView]
    dropped_topics: list[TopicView]
    topics_by: Literal["moderator", "person", "protocol"]
    joint: JointView | None
    panel: PanelView | None
    versus: VersusView | None
    rounds: list[RoundView]
    trace: RoundTrace | None
    confirmed: ConfirmView | None
    closing: ClosingView | None
    stop: StopView | None
    arguments: list[ArgumentView]
    moderation: list[ModerationView]
    failures: list[FailureView]
    cost: AttemptCost
