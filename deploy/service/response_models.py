"""What a client is told, as models: the schema is made from them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Status = Literal["queued", "open", "done", "failed", "cancelled", "aside"]


# A model beside `DebateResult` because the documented HTTP schema, field descriptions included, is made from it, and
# because what only a record's writer needs does not leave the server.
class VerdictBody(BaseModel):
    """How a debate ended.

    Attributes:
        attempt: 0, or higher after a new attempt at a failed case.
        answer: the chosen answer; null when there is none.
        how: how it was reached.
        confidence: in [0, 1]; null when unknown.
        distribution: probability per label; null when the protocol gives none.
        rounds: debate rounds after the independent answers.
        flags: marks a reader should see.
        payload: the protocol's own result.
        failure, error: why there is no verdict; empty when there is one.
        calls: replies that the verdict rests on.
        prompt_tokens, completion_tokens: of those replies; lower bounds where `calls_without_usage` is not 0.
        calls_without_usage: replies that did not say all that they used.
        cost_usd: what those replies cost when they were paid for; null when unknown.
        wall_s: seconds from the debate's opening to its verdict.
        reused: whether it was on record before it was asked for.
    """

    model_config = ConfigDict(from_attributes=True)

    attempt: int
    answer: str | None
    how: str
    confidence: float | None
    distribution: dict[str, float] | None
    rounds: int
    flags: list[str]
    payload: dict[str, Any]
    failure: str
    error: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    calls_without_usage: int
    cost_usd: float | None
    wall_s: float
    reused: bool


class Links(BaseModel):
    """Where to ask further, below the server's address."""

    self: str
    events: str


class RequestState(BaseModel):
    """Where a request stands.

    Attributes:
        id: under which it is known.
        status: `queued` waits for a place, `open` is being debated, `done` has a verdict, `failed` ended without one,
            `cancelled` was cancelled by a client, `aside` was put aside by the server: it goes on when that is back,
            unless `why` says that it cannot.
        links: where to ask further.
        verdict: null until the end, and where there is none.
        why: what put it aside; empty otherwise.
    """

    id: str
    status: Status
    links: Links
    verdict: VerdictBody | None = None
    why: str = ""


class Problem(BaseModel):
    """What went wrong: a word for programs, and a line for people."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """Every error has this shape."""

    error: Problem


class Health(BaseModel):
    """Whether the server lives, or is ready."""

    status: str


class KindStats(BaseModel):
    """One kind of request since the server's replica started.

    Attributes:
        open: being debated now.
        queued: waiting for a place now.
        aside: put aside without a verdict, such as by an outage; they go on when it is over, or can be asked for anew.
        done, failed, cancelled: ended so since the start.
        refused: answered with 429 since the start.
    """

    open: int
    queued: int
    aside: int
    done: int
    failed: int
    cancelled: int
    refused: int


class ServerStats(BaseModel):
    """What the server does; kinds that are not offered are missing."""

    debates: KindStats | None = None
    judgments: KindStats | None = None
    checks: KindStats | None = None
