"""Data models of a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.report.display import DisplayMixin
from moot.deploy.results.rounds.round_trace import RoundTrace

if TYPE_CHECKING:
    from moot.deploy.results.report.blocks import Block

State = Literal["finished", "failed", "parked", "withdrawn", "open"]
"""State of a debate: `parked` is waiting for a person, `withdrawn` was cancelled, `open` has no verdict yet."""


class TurnView(FrozenModel):
    """Reply of a model, or decision of a person.

    Attributes:
        path, role, model: path of the ask, its role, and the role's model.
        answer: canonical label or case-folded free text; None when the reply has none.
        confidence: the stated confidence; None without one.
        p: the model's own probability of the answer among the labels; None when unknown.
        p_reason: the reason why `p` is unknown; empty when it is known.
        data: the parsed reply; None when it could not be parsed.
        text: the raw text of the reply.
        outcome: `ok`, `repaired`, `reasked`, `failed`, `invalid` (an unreadable first reply), or `cut` (stopped early).
        failure, error: kind and message of a failure; empty without one.
        prompt_tokens, completion_tokens: None when the server did not report them.
        asked: number of asks; more than one after a crash.
        superseded: whether a later reply on the same path replaced it.
        reused: whether it was taken from another run.
        truncated: whether it was truncated at its token limit.
        reading: deviations in parsing the reply; see `moot.actors.record.rows`.
    """

    path: str
    role: str
    model: str
    answer: str | None
    confidence: float | None
    p: float | None
    p_reason: str
    data: dict[str, Any] | None
    text: str
    outcome: str
    failure: str
    error: str
    prompt_tokens: int | None
    completion_tokens: int | None
    asked: int
    superseded: bool
    reused: bool
    truncated: bool = False
    reading: str = ""

    @property
    def tokens(self) -> int | None:
        """Billed tokens; None unless both parts are known."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


class EventView(FrozenModel):
    """Recorded event of a debate, such as signals, a decision or a judging."""

    kind: str
    path: str
    data: dict[str, Any]


class Section(FrozenModel):
    """Stage of a debate: its replies in order of path, then its events."""

    title: str
    turns: list[TurnView]
    events: list[EventView]


class VerdictView(FrozenModel):
    """Recorded verdict of a debate.

    It is not a `DebateResult`: it has `correct` (None when it cannot be scored), probabilities of its distribution may
    be unknown, and its fields are the documented JSON of `moot show`.
    """

    answer: str | None
    how: str
    confidence: float | None
    distribution: dict[str, float | None] | None
    rounds: int
    flags: list[str]
    payload: dict[str, Any]
    failed: bool
    failure: str
    error: str
    correct: bool | None


class AttemptCost(FrozenModel):
    """Cost of an attempt; `tokens` is a lower bound if `calls_without_usage` is not 0, None without any known usage."""

    calls: int
    tokens: int | None
    tokens_reused: int | None
    calls_without_usage: int


class JudgedReplyView(FrozenModel):
    """Reply that is only judged: its role, the messages that it answers (speaker and text), and its text."""

    role: str
    domain: str
    sent: list[tuple[str, str]]
    reply: str


class AttemptView(FrozenModel):
    """Attempt at a case.

    Attributes:
        attempt: its number.
        attempts: numbers of all attempts in the record.
        state: the debate's state.
    """

    schema_version: int
    run: str
    simulated: bool
    case_id: str
    attempt: int
    attempts: list[int]
    state: State


class Transcript(DisplayMixin, AttemptView):
    """Transcript of one attempt.

    Attributes:
        aliases: other spellings by label, in the labels' order; empty when no label has any.
        judged: the judged reply; None where a case is debated.
        gold: the gold label, never shown to a model; None without one.
        accepted: all accepted answers, if there are several; never shown to a model.
        ratings: scores of human raters, None for a missing one; never shown to a model.
        trace: figures of the rounds; None for a protocol without rounds or without known figures.
        verdict: None while there is none.
    """

    question: str
    labels: list[str]
    choices: list[str]
    aliases: list[list[str]]
    title: str
    passage: str
    judged: JudgedReplyView | None
    gold: str | None
    accepted: list[str]
    ratings: list[float | None]
    invalid: str
    sections: list[Section]
    trace: RoundTrace | None
    verdict: VerdictView | None
    cost: AttemptCost

    def display_name(self) -> str:
        """See `DisplayMixin`."""
        return f"{self.case_id} of {self.run}"

    def report_blocks(self) -> list[Block]:
        """See `DisplayMixin`."""
        from moot.deploy.results.show import debate_blocks

        return debate_blocks(self)
