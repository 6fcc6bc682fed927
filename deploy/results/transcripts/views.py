"""The parts of a transcript."""

from __future__ import annotations

from typing import Any, Literal

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.rounds.round_trace import RoundTrace

State = Literal["finished", "failed", "parked", "open"]
"""How far a debate is: `parked` waits for a person, `open` has no verdict yet."""


class TurnView(FrozenModel):
    """A reply as it was given.

    Attributes:
        path, role, model: where in the debate it was said, by whom, on which model.
        answer: canonical label or folded free text; None when the reply has none.
        confidence: as stated; None when none was.
        p: the model's own probability of the answer among the labels; None when unknown, for `p_reason`.
        data: the reply as read; None when it could not be.
        text: the reply as the model wrote it.
        outcome: `ok`, `repaired`, `reasked`, `failed`, `invalid` (a first reply that could not be read), or `cut`
            (stopped early).
        failure, error: what went wrong, empty if nothing did.
        prompt_tokens, completion_tokens: None when the server did not say.
        asked: how often it was asked; more than once after a crash.
        superseded: whether a later reply on the same path replaced it.
        reused: whether it was taken from another run.
        truncated: whether it ended at its token limit.
        reading: how it was read, where not as it stood; see `moot.actors.record.rows`.
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
        """Tokens billed; None unless both parts are known."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


class EventView(FrozenModel):
    """Something that was noted: signals, decisions, judgings."""

    kind: str
    path: str
    data: dict[str, Any]


class Section(FrozenModel):
    """A stage of the debate: its replies in order of path, then what was noted of it."""

    title: str
    turns: list[TurnView]
    events: list[EventView]


class VerdictView(FrozenModel):
    """How the debate ended, as a record of any age has it.

    Not a `DebateResult`: it knows whether the answer is right (`correct`; None for what cannot be scored), a share of
    its distribution may be unknown, and its fields are the documented JSON of `moot show`.
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
    """What the attempt cost; `tokens` is a lower bound if `calls_without_usage` is not 0, None if no call said."""

    calls: int
    tokens: int | None
    tokens_reused: int | None
    calls_without_usage: int


class JudgedReplyView(FrozenModel):
    """A reply that is only judged: who gave it, in words, what it answers, and what it says."""

    role: str
    domain: str
    sent: list[tuple[str, str]]
    reply: str


class AttemptView(FrozenModel):
    """One attempt at one case of a run.

    Attributes:
        attempts: every attempt that left something in the record.
        state: how far it is.
    """

    schema_version: int
    run: str
    simulated: bool
    case_id: str
    attempt: int
    attempts: list[int]
    state: State


class Transcript(AttemptView):
    """Transcript of one attempt.

    Attributes:
        aliases: by label, in the labels' order, its other spellings; empty when no label has any.
        judged: the reply that is judged, with what it answers; None where a case is debated.
        gold: the label that the task's file calls right, never shown to a model; None without one.
        accepted: all answers that count as right, where there are several; never shown to a model.
        ratings: scores that human raters gave the text, None for a missing one; never shown to a model.
        trace: the numbers of its rounds; None for a protocol without rounds or without known numbers.
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
