"""Rows of a record for figures: replies, events and verdicts."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from moot.actors.record.schema import CaseKey
from moot.protocols.errors import UNSENT


class RecordedEvent(Protocol):
    """Recorded event before it is parsed as its type."""

    @property
    def kind(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...


class ReplyRow(NamedTuple):
    """Row of `turns` with the columns that figures need.

    Attributes:
        prompt, completion: billed tokens; None when the server did not report them.
        reused: whether it was taken from another run, so that this run did not pay for it.
        superseded: whether a later reply on the same path replaced it.
        unconfirmed: attempts that may have been billed although the server reported no usage.
        unconfirmed_tokens: upper bound of their tokens.
        received: estimate of the received tokens of a reply that was stopped early; None for any other.
        estimated: whether `prompt` or `completion` is an estimate, because the server reported too few.
        truncated: whether it was truncated at its token limit.
        overlong: whether it was longer than the requested tokens can be, and was cut.
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
    overlong: bool = False

    @property
    def key(self) -> CaseKey:
        """Case id and attempt."""
        return (self.case_id, self.attempt)

    @property
    def is_call(self) -> bool:
        """Whether this run called a model for the reply: it was not reused, and its request was sent."""
        return not self.reused and self.failure != UNSENT

    @property
    def tokens(self) -> int | None:
        """Billed tokens; None unless both parts are known."""
        return None if self.prompt is None or self.completion is None else self.prompt + self.completion


class EventPlace(NamedTuple):
    """Place of an event in a run: case, attempt and path."""

    case_id: str
    attempt: int
    path: str

    @property
    def key(self) -> CaseKey:
        """Case id and attempt."""
        return (self.case_id, self.attempt)


class EventRow(NamedTuple):
    """Row of `events`."""

    case_id: str
    attempt: int
    kind: str
    path: str
    data: dict[str, Any]

    @property
    def key(self) -> CaseKey:
        """Case id and attempt."""
        return (self.case_id, self.attempt)


class VerdictRow(NamedTuple):
    """Row of `verdicts` with the columns that figures need.

    It is not a `DebateResult`: figures read every verdict of a run, and the payloads and distributions of a million
    verdicts would take gigabytes.

    Attributes:
        correct: whether the answer is right; None when it cannot be scored, see `scored_verdicts`.
        at: Unix time of the verdict.
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
        """Case id and attempt."""
        return (self.case_id, self.attempt)
