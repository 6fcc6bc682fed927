"""A model behind the gate: every attempt waits for leave, and what it used is settled when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from moot.actors.deadline import Deadline
from moot.actors.early_stop import EarlyStop, watched
from moot.actors.limits.admission import Admission, How, Need
from moot.actors.limits.ages import debate_of
from moot.actors.limits.call_watch import Call, CallWatch
from moot.actors.limits.gate import Gate
from moot.actors.limits.stated_usage import believed
from moot.actors.meter import SILENT, Meter
from moot.actors.models.interface import Model, ModelError, ModelReply, RateHeaders, StreamingModel
from moot.actors.models.prices import Price
from moot.actors.models.reply_schema import ReplySchema
from moot.actors.models.token_bounds import prompt_bound, prompt_estimate, schema_bound
from moot.actors.tracing import NO_SPAN, Span
from moot.protocols.messages import Decoding, LogprobStage, Message, Usage


class Unconfirmed:
    """Attempts of one ask that a server may have billed without saying what they used.

    Attributes:
        attempts: how many.
        tokens_at_most: upper bound of their tokens together; the lower one is 0.
    """

    __slots__ = ("attempts", "tokens_at_most")

    def __init__(self) -> None:
        self.attempts = self.tokens_at_most = 0

    def add(self, tokens_at_most: int) -> None:
        """One more."""
        self.attempts += 1
        self.tokens_at_most += tokens_at_most


class AdmittedModel:
    """Calls a model, each attempt with leave of the gate.

    Args:
        model: the backend.
        gate: the process's gate; None admits everything, for a model that runs in this process.
        endpoint: the model's name at the limiter.
        price: the model's price; None when it is not known.
        meter: is told of every attempt.

    Attributes:
        calls: follows the attempts.
    """

    def __init__(
        self, model: Model, gate: Gate | None, endpoint: str, price: Price | None, meter: Meter = SILENT
    ) -> None:
        self._model, self._gate, self._endpoint, self._price = model, gate, endpoint, price
        self._budgets = gate.budgets if gate is not None else frozenset()
        self._bills = not model.capabilities.in_process
        self.calls = CallWatch(meter, model.name, price, bills=self._bills)

    async def complete(
        self,
        messages: Sequence[Message],
        decoding: Decoding,
        *,
        step_key: str,
        schema: ReplySchema | None,
        deadline: Deadline,
        unconfirmed: Unconfirmed,
        stop: EarlyStop | None = None,
        stage: LogprobStage = "unknown",
        span: Span = NO_SPAN,
    ) -> ModelReply:
        """One attempt. Waiting for leave does not count against the deadline.

        Args:
            messages, decoding, step_key, schema: see `Model.complete`.
            deadline: of the ask.
            unconfirmed: counts the attempt if it may be billed and nobody says what it used.
            stop: stops the reply early; its model streams.
            stage: where the reply's log-probabilities are taken, which `stop` looks at.
            span: of the ask.

        Raises:
            ModelError: as the model.
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
                    reply = await watched(
                        streaming, messages, decoding, stop, step_key=step_key, schema=schema, stage=stage
                    )
            except ModelError as error:
                billed = self._bills and error.may_be_billed
                if billed:
                    unconfirmed.add(_at_most(messages, decoding, schema))
                if not error.replayed:
                    call.failed(_how(error), error.kind, billed=billed)
                _end(admission, _how(error), billed=billed, error=error)
                raise
            except BaseException:
                if self._bills:
                    unconfirmed.add(_at_most(messages, decoding, schema))
                how: How = "broken" if deadline.passed else "cancelled"
                call.failed(how, "timeout" if deadline.passed else "", billed=self._bills)
                _end(admission, how, billed=self._bills)
                raise
            if self._bills and not reply.replayed:
                reply = believed(reply, messages)
            if self._bills and _tokens(reply.usage) is None and not reply.replayed:
                unconfirmed.add(_at_most(messages, decoding, schema))
            call.answered(reply)
            if admission is not None:
                self._settle(admission, reply)
            return reply

    async def _admitted(self, need: Need, deadline: Deadline, call: Call) -> Admission | None:
        """Leave for one attempt; None where none is needed."""
        if self._gate is None:
            return None
        with deadline.standing_still():
            admission = await self._gate.admit(self._endpoint, need)
        call.admitted()
        return admission

    def _need(self, messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None, debate: str) -> Need:
        tokens = prompt_estimate(messages) + schema_bound(schema) // 4 + decoding.max_tokens
        if not self._budgets:
            return Need(tokens, debate=debate)
        bound, budgets = prompt_bound(messages) + schema_bound(schema), {}
        if "tokens" in self._budgets:
            budgets["tokens"] = float(bound + decoding.max_tokens)
        if "usd" in self._budgets and self._price is not None:
            budgets["usd"] = self._price.bound_usd(bound, decoding.max_tokens)
        return Need(tokens, budgets, debate)

    def _settle(self, admission: Admission, reply: ModelReply) -> None:
        tokens = _tokens(reply.usage)
        spent: dict[str, float] | None = None
        if reply.replayed:
            spent = {}
        elif tokens is not None:
            cost = self._price.cost_usd(reply.usage) if self._price is not None else None
            spent = {"tokens": float(tokens), "usd": cost or 0.0}
        admission.end("answered", tokens=tokens, spent=spent, drained=_drained(reply.limits))


def _end(admission: Admission | None, how: How, *, billed: bool, error: ModelError | None = None) -> None:
    if admission is not None:
        admission.end(
            how,
            spent=None if billed else {},
            drained=error is not None and _drained(error.limits),
            error="no reply in time" if error is None else str(error),
            retry_after_s=None if error is None else error.retry_after_s,
        )


def _how(error: ModelError) -> How:
    if error.kind == "rate_limited":
        return "limited"
    return "broken" if error.kind in ("server", "connection", "timeout") else "refused"


def _tokens(usage: Usage) -> int | None:
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return usage.prompt_tokens + usage.completion_tokens


def _at_most(messages: Sequence[Message], decoding: Decoding, schema: ReplySchema | None) -> int:
    return prompt_bound(messages) + schema_bound(schema) + decoding.max_tokens


def _drained(limits: RateHeaders | None) -> bool:
    return limits is not None and (limits.requests_left == 0 or limits.tokens_left == 0)
