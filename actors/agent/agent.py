"""Agent or judge: renders an ask, calls its model, parses the reply, and records each reply that it paid for.

A plain class; `remote/run_actor.py` makes it a Ray actor, the inline and packed runtimes run it in their own process.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from contextlib import nullcontext
from typing import Any, Protocol
from uuid import uuid4

import msgspec
import structlog

from moot.actors.agent.attempt import Attempt, reply_row, unparsable_failure
from moot.actors.agent.intrinsic import (
    intrinsic_columns,
    intrinsic_of,
    logprob_stage,
    mean_surprisal,
    stage_of,
    was_constrained,
)
from moot.actors.agent.request_fingerprint import constrained_schema, max_reply_tokens, reask_messages, render_messages
from moot.actors.agent.roles import Roles
from moot.actors.limits.deadline import Deadline
from moot.actors.limits.limiter_client import BudgetSpent, Draining, EndpointDown, LimiterClient, LimiterGone
from moot.actors.limits.rate_limited_model import RateLimitedModel
from moot.actors.models.early_stop import CUT, EarlyStop
from moot.actors.models.interface import Model, ModelError, ModelReply
from moot.actors.models.prices import Price
from moot.actors.models.retry import RetryPolicy, call_with_retries
from moot.actors.models.usage_totals import UsageTotals
from moot.actors.record.rows import CUT_SUFFIX, INVALID_SUFFIX, SaveTokens, round_of
from moot.actors.record.schema import ABANDONED
from moot.actors.telemetry.failpoints import failpoint
from moot.actors.telemetry.meter import SURPRISAL, round_label
from moot.actors.telemetry.telemetry import NO_TELEMETRY, Span, Telemetry
from moot.protocols.errors import UNSENT, ConfigError
from moot.protocols.messages import Ask, AskResult, Event, LogprobStage, Unreadable, Usage, family_of
from moot.protocols.reply_ids import load_reply
from moot.protocols.reply_parsing import InvalidReply, Parsed, parse_reply
from moot.protocols.templates import Templates

_log = structlog.get_logger(__name__)
_LONGEST_ERROR = 500


class Sink(Protocol):
    """Sink for the rows of paid replies, and for events of abandoned asks."""

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        """Accept one row of the journal's stream `replies`; never waits."""
        ...

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        """Accept an event; never waits."""
        ...


class Agent:
    """Agent: answers the asks of one role on one model, any number at once.

    Args:
        model: the backend.
        roles: the run's bindings, for persona and decoding.
        templates: the run's templates.
        sink: receives the rows of paid replies.
        save_tokens: how much of the token log-probabilities is recorded.
        save_reasoning: whether hidden reasoning is recorded.
        retry: the retry policy.
        limiter_client: admits every attempt; None for a model without limits.
        endpoint: the model's name at the limiter.
        price: the model's price; None when unknown.
        telemetry: metrics and traces of the process.
    """

    def __init__(
        self,
        model: Model,
        roles: Roles,
        templates: Templates,
        sink: Sink,
        save_tokens: SaveTokens = "all",
        retry: RetryPolicy | None = None,
        *,
        limiter_client: LimiterClient | None = None,
        endpoint: str = "",
        price: Price | None = None,
        save_reasoning: bool = False,
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        self._admitted = RateLimitedModel(model, limiter_client, endpoint or model.name, price, telemetry.meter)
        self._telemetry = telemetry
        self._model, self._roles, self._templates, self._sink = model, roles, templates, sink
        self._save_tokens: SaveTokens = save_tokens
        self._save_reasoning = save_reasoning
        self._retry = retry or RetryPolicy()
        self._life = uuid4().hex[:12]
        self._count = itertools.count()
        self._under_way: dict[tuple[str, int, str], asyncio.Future[AskResult | None]] = {}
        self._process_id = os.getpid()

    async def answer(self, ask: Ask) -> AskResult:
        """Reply to an ask, or its terminal failure as a value; the row is in the sink before this returns.

        A duplicate of an ask in flight (a message delivered twice, a restarted moderator) joins it and is not paid for
        again. Cancelling cancels the model's call; a caller that had joined it then makes a call of its own.
        """
        while (joined := self._under_way.get(ask.key)) is not None:
            answered = await asyncio.shield(joined)
            if answered is not None:
                return answered
        ended = self._under_way[ask.key] = asyncio.get_running_loop().create_future()
        answered = None
        span = self._telemetry.tracer.ask(ask.traceparent)
        try:
            answered = await self._answer(ask, span)
            return answered
        finally:
            del self._under_way[ask.key]
            ended.set_result(answered)
            _end(span, ask, self._model.name, answered)

    async def close(self) -> None:
        """Release the model."""
        await self._model.close()

    async def _answer(self, ask: Ask, span: Span) -> AskResult:
        binding = self._roles.binding(ask.role)
        reply_id = ask.unreadable.reply_id if ask.unreadable else f"{self._life}-{next(self._count):x}"
        attempt = Attempt(ask, binding, reply_id, span)
        try:
            attempt.messages = await render_messages(ask, self._templates, binding)
            async with Deadline(ask.seconds_left) as attempt.deadline:
                return await self._converse(attempt)
        except TimeoutError:
            return self._failed(attempt, "timeout", f"no usable reply within {ask.seconds_left:g} s")
        except ModelError as error:
            return self._failed(attempt, error.kind, error.message, reused_from=error.replayed or None)
        except ConfigError as error:
            return self._failed(attempt, UNSENT, str(error), prompt_tokens=0, completion_tokens=0)
        except (BudgetSpent, EndpointDown, LimiterGone, Draining) as stop:
            self._abandon(attempt, stop.kind)
            return self._answered(attempt, "unpaid", failure=stop.kind, error=str(stop))
        except asyncio.CancelledError:
            self._abandon(attempt, "cancelled")
            raise
        except Exception as bug:
            # Without a row and a reply the caller would wait for its deadline, so a bug fails the ask.
            _log.exception("an ask raised", case=ask.case_id, path=ask.path)
            return self._failed(attempt, "bug", f"{type(bug).__name__}: {bug}"[:_LONGEST_ERROR])

    async def _converse(self, attempt: Attempt) -> AskResult:
        ask = attempt.ask
        if ask.images and not self._model.capabilities.images:
            raise ModelError("request", f"model {self._model.name!r} takes no pictures")
        reply_model = load_reply(ask.reply)
        offered, longest = (
            self._model.capabilities.structured_output,
            max_reply_tokens(attempt.binding, attempt.decoding),
        )
        attempt.schema = constrained_schema(attempt.binding, offered, reply_model, ask.labels, longest, ask.slots)
        if attempt.schema is not None and attempt.binding.profile is not None:
            attempt.decoding = attempt.binding.profile.beside_schema(attempt.decoding)
        if ask.unreadable is not None:
            return await self._reask(attempt, reply_model, ask.unreadable)
        reply = await self._sampled(attempt, "", ask.cuts)
        try:
            parsed = parse_reply(reply.text, reply_model, ask.labels, ask.choices, ask.aliases, plain=ask.plain)
        except InvalidReply as error:
            self._write(attempt, outcome="invalid", suffix=INVALID_SUFFIX, error=str(error))
            first = Unreadable(attempt.reply_id, reply.text, str(error), reply.usage)
            return await self._reask(attempt, reply_model, first)
        return self._done(attempt, parsed, "repaired" if parsed.repaired else "ok")

    async def _reask(self, attempt: Attempt, reply_model: Any, first: Unreadable) -> AskResult:
        ask = attempt.ask
        attempt.usage_before = first.usage
        attempt.reply = None
        attempt.reasked = (first.text, first.error)
        attempt.messages = reask_messages(attempt.messages, *attempt.reasked, self._templates)
        reply = await self._sampled(attempt, INVALID_SUFFIX, ask.cuts if ask.unreadable else 0)
        try:
            parsed = parse_reply(reply.text, reply_model, ask.labels, ask.choices, ask.aliases, plain=ask.plain)
        except InvalidReply as error:
            free = attempt.schema is None and self._model.capabilities.structured_output != "no"
            return self._failed(
                attempt, "unparsable", unparsable_failure(reply, attempt, error.plain, may_constrain=free)
            )
        return self._done(attempt, parsed, "reasked")

    async def _sampled(self, attempt: Attempt, suffix: str, cuts: int) -> ModelReply:
        """Reply to the attempt's messages; replies stopped early before it are recorded too.

        Args:
            attempt: the ask.
            suffix: of the call.
            cuts: number of recorded replies to the call that were stopped early.
        """
        stop = attempt.binding.early_stop if self._model.capabilities.streaming else None
        attempt.stopped = attempt.stopped or cuts > 0
        while True:
            sample_key = f"{attempt.ask.step_key}{suffix}{CUT_SUFFIX}{cuts}" if cuts else attempt.ask.step_key + suffix
            may_stop = stop if stop is not None and cuts < stop.resamples else None
            reply = attempt.reply = await self._call(attempt, sample_key, may_stop)
            attempt.prompt_cut |= reply.prompt_cut
            if reply.finish_reason != CUT or may_stop is None:
                return reply
            cuts += 1
            attempt.stopped = True
            self._write(attempt, outcome=CUT, suffix=f"{suffix}{CUT_SUFFIX}{cuts}")
            attempt.reply = None

    async def _call(self, attempt: Attempt, step_key: str, stop: EarlyStop | None) -> ModelReply:
        deadline = attempt.deadline
        assert deadline is not None
        kind = ""

        async def once() -> ModelReply:
            nonlocal kind
            try:
                return await self._admitted.complete(
                    attempt.messages,
                    attempt.decoding,
                    step_key=step_key,
                    schema=attempt.schema,
                    deadline=deadline,
                    used=attempt.used,
                    stop=stop,
                    stage=self._stage(attempt),
                    span=attempt.span,
                )
            except ModelError as error:
                kind = error.kind
                raise

        async def wait(seconds: float) -> None:
            self._admitted.calls.retried(kind)
            refused = kind == "rate_limited"
            with deadline.paused() if refused else nullcontext():  # like waiting for the limiter, it does not count
                await asyncio.sleep(seconds)

        return await call_with_retries(self._retry, once, sleep=wait, clock=deadline.clock)

    def _done(self, attempt: Attempt, parsed: Parsed, outcome: Any) -> AskResult:
        attempt.readings = parsed.readings
        constrained = attempt.schema is not None
        intrinsic = intrinsic_of(
            attempt.reply, parsed.answer, attempt.ask, self._stage(attempt), constrained=constrained
        )
        answered = self._answered(attempt, outcome, data=parsed.data, answer=parsed.answer, intrinsic=intrinsic)
        self._write(
            attempt,
            outcome=outcome,
            data=_json(parsed.data),
            answer=parsed.answer,
            **intrinsic_columns(intrinsic),
        )
        return answered

    def _stage(self, attempt: Attempt) -> LogprobStage:
        """Sampling stage of the log-probabilities of the attempt's reply."""
        declared = self._model.capabilities.logprob_stage
        return stage_of(declared, attempt.binding.profile, constrained=attempt.schema is not None)

    def _failed(self, attempt: Attempt, kind: str, message: str, **columns: Any) -> AskResult:
        answered = self._answered(attempt, "failed", failure=kind, error=message)
        self._write(attempt, outcome="failed", failure=kind, error=message, **columns)
        _log.warning("ask failed", case=attempt.ask.case_id, path=attempt.ask.path, kind=kind, error=message)
        return answered

    def _abandon(self, attempt: Attempt, why: str) -> None:
        """Record that an ask ends without a reply, so that it is asked again when the run resumes, and what it may have
        cost."""
        used, attempt.used = attempt.used, UsageTotals()
        cost = {
            "why": why,
            "model": self._model.name,
            "attempts": used.unconfirmed_attempts,
            "tokens_at_most": used.unconfirmed_tokens_max,
        }
        self._sink.put_event(attempt.ask.case_id, attempt.ask.attempt, Event(ABANDONED, attempt.ask.path, cost))

    def _answered(self, attempt: Attempt, outcome: Any, **fields: Any) -> AskResult:
        reply = attempt.reply
        usage = reply.usage if reply else Usage()
        if attempt.usage_before is not None:
            used_again = reply is not None or attempt.used.unconfirmed_attempts > 0
            usage = usage + attempt.usage_before if used_again else attempt.usage_before
        return AskResult(
            path=attempt.ask.path,
            reply_id=attempt.reply_id,
            model=self._model.name,
            text=reply.text if reply else "",
            usage=usage,
            outcome=outcome,
            reasked=attempt.reasked,
            stopped=attempt.stopped,
            free=attempt.is_free,
            prompt_cut=attempt.prompt_cut,
            **fields,
        )

    def _write(self, attempt: Attempt, *, outcome: str, suffix: str = "", **columns: Any) -> None:
        """Put a reply's row into the sink; a reply that does not end its ask has a path and an id of its own."""
        ask = attempt.ask
        if attempt.reply is not None:
            failpoint(f"{'judge' if ask.role.startswith('judge') else 'agent'}.received")
        known = reply_row(attempt, suffix, self._save_tokens, save_reasoning=self._save_reasoning)
        own = {
            "model": self._model.name,
            "template_hash": self._templates.hash(ask.template),
            "outcome": outcome,
            "process_id": self._process_id,
        }
        if (reply := attempt.reply) is not None:
            own |= {"server": reply.server or None, "served_model": reply.served_model or None}
            own["held"] = constrained = was_constrained(reply, attempt.schema is not None)
            if reply.tokens is not None:
                own["logprob_stage"] = stage = logprob_stage(reply, self._stage(attempt))
                if (surprisal := mean_surprisal(reply.tokens, stage, constrained=constrained)) is not None:
                    role, number = family_of(ask.role), round_label(round_of(ask.path))
                    self._telemetry.meter.observe(SURPRISAL, surprisal, self._model.name, role, number)
        attempt.used = UsageTotals()
        self._sink.put_reply(ask.case_id, {**known, **own, **columns})


def _end(span: Span, ask: Ask, model: str, answered: AskResult | None) -> None:
    span.end(
        answered.failure if answered else "cancelled",
        moot__role=ask.role,
        moot__path=ask.path,
        gen_ai__request__model=model,
        gen_ai__usage__input_tokens=answered.usage.prompt_tokens if answered else None,
        gen_ai__usage__output_tokens=answered.usage.completion_tokens if answered else None,
        moot__outcome=answered.outcome if answered else "cancelled",
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
