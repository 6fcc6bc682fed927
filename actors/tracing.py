"""One trace per debate: its W3C context, and the port that takes spans.

A trace's id hangs on the run's place, the case and its attempt, so that a debate that is replayed after a crash, or
gone on with another day, stays one trace.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple, Protocol

_VERSION, _FIELDS, _SAMPLED = "00", (2, 32, 16, 2), 1

Value = str | int | float | bool | None
"""What a span's attribute may be; None is left out."""


class TraceContext(NamedTuple):
    """Where in which trace something belongs."""

    trace_id: int
    span_id: int
    sampled: bool = False

    @classmethod
    def of(cls, run: str, case_id: str, attempt: int) -> TraceContext:
        """Of a debate: the same for every life of it.

        Args:
            run: what tells the run from others.
        """
        digest = blake2b("\0".join((run, case_id, str(attempt))).encode("utf-8", "surrogatepass"), digest_size=24)
        raw = digest.digest()
        return cls(int.from_bytes(raw[:16], "big") or 1, int.from_bytes(raw[16:], "big") or 1)

    @classmethod
    def read(cls, traceparent: str) -> TraceContext | None:
        """What a `traceparent` says; None when it is none of version 00.

        >>> TraceContext.read("00-000000000000000000000000000000ff-000000000000000a-01")
        TraceContext(trace_id=255, span_id=10, sampled=True)
        """
        parts = traceparent.split("-")
        if tuple(map(len, parts)) != _FIELDS or parts[0] != _VERSION:
            return None
        try:
            trace_id, span_id, flags = (int(part, 16) for part in parts[1:])
        except ValueError:
            return None
        return cls(trace_id, span_id, bool(flags & _SAMPLED)) if trace_id and span_id else None

    @property
    def traceparent(self) -> str:
        """As it travels."""
        return f"{_VERSION}-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


class Span(Protocol):
    """Work with a beginning and an end."""

    def child(self, name: str) -> Span:
        """A part of it that begins now."""
        ...

    def end(self, failed: str = "", **attributes: Value) -> None:
        """It ends now. Without this it is never exported.

        Args:
            failed: kind of failure; empty for none.
            attributes: a `__` in a name stands for a dot.
        """
        ...


class Tracer(Protocol):
    """Begins spans; never waits."""

    def context(self, case_id: str, attempt: int) -> TraceContext:
        """Of a debate, the place of its root span."""
        ...

    def debate(self, context: TraceContext) -> Span:
        """The root span of a debate."""
        ...

    def ask(self, traceparent: str) -> Span:
        """The span of an ask, below what has asked."""
        ...

    async def close(self) -> None:
        """Export what there is, for a few seconds at most; none begins afterwards."""
        ...


class NoSpan:
    """Work that nobody follows."""

    def child(self, name: str) -> Span:
        """See `Span.child`."""
        return self

    def end(self, failed: str = "", **attributes: Value) -> None:
        """See `Span.end`."""


NO_SPAN: Span = NoSpan()


class Untraced:
    """Gives debates their contexts, not sampled, and follows nothing.

    Args:
        run: what tells the run from others.
    """

    def __init__(self, run: str) -> None:
        self._run = run

    def context(self, case_id: str, attempt: int) -> TraceContext:
        """See `Tracer.context`."""
        return TraceContext.of(self._run, case_id, attempt)

    def debate(self, context: TraceContext) -> Span:
        """See `Tracer.debate`."""
        return NO_SPAN

    def ask(self, traceparent: str) -> Span:
        """See `Tracer.ask`."""
        return NO_SPAN

    async def close(self) -> None:
        """See `Tracer.close`."""


UNTRACED: Tracer = Untraced("")
