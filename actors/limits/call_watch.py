"""What is counted and traced of a model's calls: each attempt, where it is made and paid for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

from moot.actors.limits.admission import How
from moot.actors.meter import CALL_SECONDS, CALLS, COST, LIMITER_WAIT, RETRIES, TOKENS, UNKNOWN_COST, Meter
from moot.actors.models.interface import ModelReply
from moot.actors.models.prices import Price
from moot.actors.models.retry import RETRIED_KINDS
from moot.actors.tracing import Span

_NO_PRICE, _NO_USAGE = "price", "usage"
"""Why a cost is unknown: nobody knows the model's price; the server did not say what it used."""


class CallWatch:
    """Follows the attempts to call one model.

    Args:
        meter: takes the numbers.
        model: its name as configured.
        price: None when it is not known.
        bills: whether somebody bills its calls.
    """

    def __init__(self, meter: Meter, model: str, price: Price | None, *, bills: bool) -> None:
        self.meter, self.model, self.price, self.bills = meter, model, price, bills
        for how in get_args(How):
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
        """Another attempt follows one that failed in that way."""
        self.meter.add(RETRIES, 1.0, self.model, kind)

    @contextmanager
    def attempt(self, parent: Span) -> Iterator[Call]:
        """One attempt, from before it waits for leave; what it is told inside is what counts."""
        call = Call(self, parent.child("call"))
        try:
            yield call
        finally:
            call.close()


class Call:
    """One attempt.

    Args:
        watch: of its model.
        span: of the attempt.
    """

    __slots__ = ("_began", "_failed", "_outcome", "_span", "_tokens", "_wait_s", "_watch")

    def __init__(self, watch: CallWatch, span: Span) -> None:
        self._watch, self._span = watch, span
        self._outcome, self._failed = "unused", ""
        self._tokens: tuple[int | None, int | None] = (None, None)
        self._began = time.perf_counter()
        self._wait_s: float | None = None

    def admitted(self) -> None:
        """It may start: the gate has given leave."""
        now = time.perf_counter()
        self._wait_s, self._began = now - self._began, now
        self._watch.meter.observe(LIMITER_WAIT, self._wait_s, self._watch.model)

    def answered(self, reply: ModelReply) -> None:
        """There is a reply; one that was taken from a record is no call."""
        if reply.replayed:
            return
        watch, usage = self._watch, reply.usage
        watch.meter.observe(CALL_SECONDS, time.perf_counter() - self._began, watch.model)
        self._tokens = (usage.prompt_tokens, usage.completion_tokens)
        for part, tokens in zip(("prompt", "completion"), self._tokens, strict=True):
            if tokens:
                watch.meter.add(TOKENS, tokens, watch.model, part)
        self._charge(None if watch.price is None else watch.price.cost_usd(usage), billed=watch.bills)
        self._ended("answered")

    def _charge(self, cost_usd: float | None, *, billed: bool) -> None:
        watch = self._watch
        if cost_usd:
            watch.meter.add(COST, cost_usd, watch.model)
        elif cost_usd is None and billed:
            watch.meter.add(UNKNOWN_COST, 1.0, watch.model, _NO_PRICE if watch.price is None else _NO_USAGE)

    def failed(self, how: How, kind: str, *, billed: bool) -> None:
        """It gave no reply.

        Args:
            how: see `How`.
            kind: of the failure; empty when nobody waited for the reply.
            billed: whether it may cost something all the same.
        """
        self._failed = kind
        self._charge(None, billed=billed)
        self._ended(how)

    def _ended(self, how: How) -> None:
        self._outcome = how
        self._watch.meter.add(CALLS, 1.0, self._watch.model, how)

    def close(self) -> None:
        """End its span."""
        prompt, completion = self._tokens
        self._span.end(
            self._failed,
            gen_ai__request__model=self._watch.model,
            gen_ai__usage__input_tokens=prompt,
            gen_ai__usage__output_tokens=completion,
            moot__outcome=self._outcome,
            moot__limiter_wait_s=self._wait_s,
        )
