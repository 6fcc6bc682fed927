"""Rate-limited model: the limiter admits each attempt; its usage is settled and counted when it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast, get_args

from moot.actors.limits.call_queue import Admission, CallDemand, CallOutcome
from moot.actors.limits.deadline import Deadline
from moot.actors.limits.limiter_client import LimiterClient
from moot.actors.models.early_stop import EarlyStop, stream_with_early_stop
from moot.actors.models.interface import Model, ModelError, ModelReply, RateHeaders, ReplySchema, StreamingModel
from moot.actors.models.prices import Price
from moot.actors.models.prompt_cuts import with_prompt_mark
from moot.actors.models.retry import RETRIED_KINDS
from moot.actors.models.token_bounds import prompt_bound, prompt_estimate, schema_bound, with_plausible_usage
from moot.actors.models.token_logprobs import logprobs_given
from moot.actors.models.usage_totals import UsageTotals
from moot.actors.telemetry.meter import (
    CALL_SECONDS,
    CALLS,
    COST,
    LIMITER_WAIT,
    RETRIES,
    SILENT,
    TOKENS,
    UNKNOWN_COST,
    Meter,
)
from moot.actors.telemetry.telemetry import NO_SPAN, Span
from moot.protocols.messages import Decoding, LogprobStage, Message, Usage, debate_of


class RateLimitedModel:
    """Model whose attempts the limiter admits.

    Args:
        model: the backend.
        limiter_client: of the process; None admits everything, for a model that runs in this process.
        endpoint: name of the model's endpoint at the limiter.
        price: of the model; None when unknown.
        meter: counts every attempt.

    Attributes:
        calls: telemetry of the attempts.
    """

    def __init__(
        self,
        model: Model,
        limiter_client: LimiterClient | None,
        endpoint: str,
        price: Price | None,
        meter: Meter = SILENT,
    ) -> None:
        self._model, self._limiter_client, self._endpoint, self._price = model, limiter_client, endpoint, price
        self._budgets = limiter_client.budgets if limiter_client is not None else frozenset()
        self._bills = not model.capabilities.in_process
        self.calls = CallTelemetry(meter, model.name, price, bills=self._bills)

    async def complete(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        *,
        step_key: str,
        schema: ReplySchema | None,
        deadline: Deadline,
        used: UsageTotals,
        stop: EarlyStop | None = None,
        stage: LogprobStage = "unknown",
        span: Span = NO_SPAN,
    ) -> ModelReply:
        """Make one attempt. Waiting for the limiter does not count against the deadline.

        Args:
            messages, decoding, step_key, schema: see `Model.complete`.
            deadline: of the ask.
            used: receives the attempt if it may be billed without reported usage.
            stop: stops the reply early, which needs streaming.
            stage: sampling stage of the reply's log-probabilities, which `stop` depends on.
            span: of the ask.

        Raises:
            ModelError: from the backend.
            BudgetSpent, EndpointDown, LimiterGone, Draining: the attempt may not start.
        """
        with self.calls.attempt(span) as call:
            need = self._need(messages, decoding, schema, debate_of(step_key))
            admission = await self._admitted(need, deadline, call)
            try:
                if stop is None:
                    reply = await self._model.complete(messages, decoding, step_key=step_key, schema=schema)
                else:
                    streaming = cast(StreamingModel, self._model)
                    reply = await stream_with_early_stop(
                        streaming, messages, decoding, stop, step_key=step_key, schema=schema, stage=stage
                    )
            except ModelError as error:
                billed = self._bills and error.may_be_billed
                if billed:
                    used.add_unconfirmed(_at_most(messages, decoding, schema))
                if not error.replayed:
                    call.failed(_outcome(error), error.kind, billed=billed)
                _end(admission, _outcome(error), billed=billed, error=error)
                raise
            except BaseException:
                if self._bills:
                    used.add_unconfirmed(_at_most(messages, decoding, schema))
                how: CallOutcome = "broken" if deadline.passed else "cancelled"
                call.failed(how, "timeout" if deadline.passed else "", billed=self._bills)
                _end(admission, how, billed=self._bills)
                raise
            if self._bills and not reply.replayed:
                reply = with_plausible_usage(with_prompt_mark(reply, messages), messages)
                reply = _with_logprob_mark(reply, decoding)
            if self._bills and reply.usage.tokens is None and not reply.replayed:
                used.add_unconfirmed(_at_most(messages, decoding, schema))
            call.answered(reply)
            if admission is not None:
                self._settle(admission, reply)
            return reply

    async def _admitted(self, need: CallDemand, deadline: Deadline, call: CallAttempt) -> Admission | None:
        """Admission of one attempt; None where none is needed."""
        if self._limiter_client is None:
            return None
        with deadline.paused():
            admission = await self._limiter_client.admit(self._endpoint, need)
        call.admitted()
        return admission

    def _need(
        self, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None, debate: str
    ) -> CallDemand:
        tokens = prompt_estimate(messages) + schema_bound(schema) // 4 + decoding.max_tokens
        if not self._budgets:
            return CallDemand(tokens, debate=debate)
        bound, budgets = prompt_bound(messages) + schema_bound(schema), {}
        if "tokens" in self._budgets:
            budgets["tokens"] = float(bound + decoding.max_tokens)
        if "usd" in self._budgets and self._price is not None:
            budgets["usd"] = self._price.bound_usd(bound, decoding.max_tokens)
        return CallDemand(tokens, budgets, debate)

    def _settle(self, admission: Admission, reply: ModelReply) -> None:
        tokens = reply.usage.tokens
        spent: dict[str, float] | None = None
        if reply.replayed:
            spent = {}
        elif tokens is not None:
            cost = self._price.cost_usd(reply.usage) if self._price is not None else None
            spent = {"tokens": float(tokens), "usd": cost or 0.0}
        admission.end("answered", tokens=tokens, spent=spent, drained=_drained(reply.limits))


def _end(admission: Admission | None, how: CallOutcome, *, billed: bool, error: ModelError | None = None) -> None:
    if admission is not None:
        admission.end(
            how,
            spent=None if billed else {},
            drained=error is not None and _drained(error.limits),
            error="no reply in time" if error is None else str(error),
            retry_after_s=None if error is None else error.retry_after_s,
        )


def _outcome(error: ModelError) -> CallOutcome:
    if error.kind == "rate_limited":
        return "limited"
    return "broken" if error.kind in ("server", "connection", "timeout") else "refused"


def _at_most(messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None) -> int:
    return prompt_bound(messages) + schema_bound(schema) + decoding.max_tokens


def _with_logprob_mark(reply: ModelReply, decoding: Decoding) -> ModelReply:
    """The reply, marked if its text came without the log-probabilities that were requested."""
    return replace(reply, without_logprobs=True) if logprobs_given(reply, decoding) is False else reply


def _drained(limits: RateHeaders | None) -> bool:
    return limits is not None and (limits.requests_left == 0 or limits.tokens_left == 0)


_NO_PRICE, _NO_USAGE = "price", "usage"
"""Reasons for an unknown cost: the model's price is unknown; the server did not report usage."""


class CallTelemetry:
    """Telemetry of the calls to one model.

    Args:
        meter: takes the numbers.
        model: its configured name.
        price: None when unknown.
        bills: whether its calls are billed.
    """

    def __init__(self, meter: Meter, model: str, price: Price | None, *, bills: bool) -> None:
        self.meter, self.model, self.price, self.bills = meter, model, price, bills
        for how in get_args(CallOutcome):
            if how != "unused":
                meter.add(CALLS, 0.0, model, how)
        for kind in sorted(RETRIED_KINDS):
            meter.add(RETRIES, 0.0, model, kind)
        for part in ("prompt", "completion"):
            meter.add(TOKENS, 0.0, model, part)
        for why in (_NO_PRICE, _NO_USAGE):
            meter.add(UNKNOWN_COST, 0.0, model, why)
        if price is not None:
            meter.add(COST, 0.0, model)

    def retried(self, kind: str) -> None:
        """Count a retry after a failure of this kind."""
        self.meter.add(RETRIES, 1.0, self.model, kind)

    @contextmanager
    def attempt(self, parent: Span) -> Iterator[CallAttempt]:
        """Trace one attempt, from before it waits for the limiter; the block reports its outcome."""
        call = CallAttempt(self, parent.child("call"))
        try:
            yield call
        finally:
            call.close()


class CallAttempt:
    """Telemetry of one attempt.

    Args:
        telemetry: of its model.
        span: of the attempt.
    """

    __slots__ = ("_began", "_failed", "_outcome", "_span", "_telemetry", "_usage", "_wait_s")

    def __init__(self, telemetry: CallTelemetry, span: Span) -> None:
        self._telemetry, self._span = telemetry, span
        self._outcome, self._failed = "unused", ""
        self._usage = Usage()
        self._began = time.perf_counter()
        self._wait_s: float | None = None

    def admitted(self) -> None:
        """Start the attempt: the limiter has admitted it."""
        now = time.perf_counter()
        self._wait_s, self._began = now - self._began, now
        self._telemetry.meter.observe(LIMITER_WAIT, self._wait_s, self._telemetry.model)

    def answered(self, reply: ModelReply) -> None:
        """Record a reply; a replayed one is no call."""
        if reply.replayed:
            return
        telemetry, self._usage = self._telemetry, (usage := reply.usage)
        telemetry.meter.observe(CALL_SECONDS, time.perf_counter() - self._began, telemetry.model)
        for part, tokens in (("prompt", usage.prompt_tokens), ("completion", usage.completion_tokens)):
            if tokens:
                telemetry.meter.add(TOKENS, tokens, telemetry.model, part)
        self._charge(None if telemetry.price is None else telemetry.price.cost_usd(usage), billed=telemetry.bills)
        self._ended("answered")

    def _charge(self, cost_usd: float | None, *, billed: bool) -> None:
        telemetry = self._telemetry
        if cost_usd:
            telemetry.meter.add(COST, cost_usd, telemetry.model)
        elif cost_usd is None and billed:
            telemetry.meter.add(UNKNOWN_COST, 1.0, telemetry.model, _NO_PRICE if telemetry.price is None else _NO_USAGE)

    def failed(self, how: CallOutcome, kind: str, *, billed: bool) -> None:
        """Record an attempt without a reply.

        Args:
            how: see `CallOutcome`.
            kind: of the failure; empty when the attempt was cancelled.
            billed: whether it may be billed all the same.
        """
        self._failed = kind
        self._charge(None, billed=billed)
        self._ended(how)

    def _ended(self, how: CallOutcome) -> None:
        self._outcome = how
        self._telemetry.meter.add(CALLS, 1.0, self._telemetry.model, how)

    def close(self) -> None:
        """End its span."""
        self._span.end(
            self._failed,
            gen_ai__request__model=self._telemetry.model,
            gen_ai__usage__input_tokens=self._usage.prompt_tokens,
            gen_ai__usage__output_tokens=self._usage.completion_tokens,
            moot__outcome=self._outcome,
            moot__limiter_wait_s=self._wait_s,
        )
