"""Response models; the OpenAPI schema is generated from them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Status = Literal["queued", "open", "done", "failed", "cancelled", "aside"]


# Separate from `DebateResult`, because the documented HTTP schema, field descriptions included, is generated from it,
# and because fields for the record's writer do not leave the server.
class VerdictBody(BaseModel):
    """Verdict of a debate.

    Attributes:
        attempt: 0, or higher after retries of a failed case.
        answer: the chosen answer; null when there is none.
        how: how it was reached.
        confidence: in [0, 1]; null when unknown.
        distribution: probability per label; null without one.
        rounds: debate rounds after the independent answers.
        flags: notable conditions.
        payload: the protocol's own result.
        failure, error: kind and message of a failure; empty with a verdict.
        calls: replies that the verdict depends on.
        prompt_tokens, completion_tokens: of those replies; lower bounds where `calls_without_usage` is not 0.
        calls_without_usage: replies without complete usage.
        cost_usd: cost of those replies when they were paid for; null when unknown.
        wall_s: seconds from the debate's start to its verdict.
        reused: whether it was recorded before the request.
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
    """Paths of further requests, relative to the server's address."""

    self: str
    events: str


class RequestState(BaseModel):
    """State of a request.

    Attributes:
        id: the request's id.
        status: `queued` waits for a slot, `open` is running, `done` has a verdict, `failed` ended without one,
            `cancelled` was cancelled by a client, `aside` was interrupted: it resumes when the cause is over,
            unless `why` says that it cannot.
        links: paths of further requests.
        verdict: null until the end, and where there is none.
        why: reason of an interruption; empty otherwise.
    """

    id: str
    status: Status
    links: Links
    verdict: VerdictBody | None = None
    why: str = ""


class Problem(BaseModel):
    """Error: a code for programs, and a message for people."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """Body of every error response."""

    error: Problem


class Health(BaseModel):
    """Liveness or readiness of the server."""

    status: str


class KindStats(BaseModel):
    """Statistics of one kind of request since the server's replica started.

    Attributes:
        open: running now.
        queued: waiting for a slot now.
        aside: interrupted without a verdict, such as by an outage; they resume after it, or can be requested again.
        lost: accepted before the start, damaged on the server's disk, and not sent again since.
        done, failed, cancelled: ended so since the start.
        refused: answered with 429 since the start.
    """

    open: int
    queued: int
    aside: int
    lost: int
    done: int
    failed: int
    cancelled: int
    refused: int


class ServerStats(BaseModel):
    """Statistics by kind of request; kinds that are not offered are missing."""

    debates: KindStats | None = None
    judgments: KindStats | None = None
    checks: KindStats | None = None
