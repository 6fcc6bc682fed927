"""Rows of a record as figures read them: replies, events and verdicts."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from moot.actors.record.schema import CaseKey
from moot.protocols.errors import UNSENT


class RecordedEvent(Protocol):
    """An event of the record, before it is read as its type."""

    @property
    def kind(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...


class ReplyRow(NamedTuple):
    """A row of `turns`, as far as counting goes.

    Attributes:
        prompt, completion: tokens billed; None when the server did not say.
        reused: taken from another run, so not paid for here.
        superseded: replaced by a later reply on the same path.
        unconfirmed: attempts that may have been billed without the server saying what they used.
        unconfirmed_tokens: at most so many tokens in them.
        received: tokens that had come of a reply that was stopped early; None for any other.
        estimated: whether `prompt` or `completion` is an estimate: the server reported too few.
        truncated: whether it ended at its token limit.
    """

    case_id: str
    attempt: int
    path: str
    role: str
    model: str
    outcome: str
    failure: str
    prompt: int | None
    completion: int | None
    reused: bool
    superseded: bool
    unconfirmed: int = 0
    unconfirmed_tokens: int = 0
    received: int | None = None
    estimated: bool = False
    truncated: bool = False

    @property
    def key(self) -> CaseKey:
        """The debate it belongs to."""
        return (self.case_id, self.attempt)

    @property
    def is_call(self) -> bool:
        """Whether a model was called for it."""
        return not self.reused and self.failure != UNSENT

    @property
    def tokens(self) -> int | None:
        """Tokens billed; None unless both parts are known."""
        return None if self.prompt is None or self.completion is None else self.prompt + self.completion


class EventPlace(NamedTuple):
    """Where in a run an event happened."""

    case_id: str
    attempt: int
    path: str

    @property
    def key(self) -> CaseKey:
        """The debate it belongs to."""
        return (self.case_id, self.attempt)


class EventRow(NamedTuple):
    """A row of `events`."""

    case_id: str
    attempt: int
    kind: str
    path: str
    data: dict[str, Any]

    @property
    def key(self) -> CaseKey:
        """The debate it belongs to."""
        return (self.case_id, self.attempt)


class VerdictRow(NamedTuple):
    """A row of `verdicts`, as far as counting goes; `correct` is None for what cannot be scored: see
    `scored_verdicts`.

    Not a `DebateResult`: figures read every verdict of a run, and of a million the payloads and distributions alone
    would take gigabytes.
    """

    case_id: str
    attempt: int
    answer: str | None
    how: str
    rounds: int
    failed: bool
    failure: str
    gold: str | None
    correct: bool | None
    at: float

    @property
    def key(self) -> CaseKey:
        """The debate it closes."""
        return (self.case_id, self.attempt)
