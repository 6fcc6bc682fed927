"""Spans through OpenTelemetry's SDK; imported only where its environment asks for traces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision

from moot.actors.tracing import NO_SPAN, Span, TraceContext, Value

FLUSH_WITHIN_S = 5.0
"""Seconds for the last spans; a collector that does not take them by then does not get them."""

_UNNAMED = "unknown_service"


class _Ids(RandomIdGenerator):
    """Random ids, but for a root span the ones that were chosen for it. Of one event loop: nothing comes in between."""

    root: TraceContext | None = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self.root is None else self.root.trace_id

    def generate_span_id(self) -> int:
        return super().generate_span_id() if self.root is None else self.root.span_id


class OtelSpan:
    """A span of the SDK.

    Args:
        tracer: begins its children.
        span: what is wrapped.
    """

    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer, self._span = tracer, span

    def child(self, name: str) -> Span:
        """See `tracing.Span.child`."""
        below = trace.set_span_in_context(self._span, Context())
        return OtelSpan(self._tracer, self._tracer.start_span(name, below))

    def end(self, failed: str = "", **attributes: Value) -> None:
        """See `tracing.Span.end`."""
        if self._span.is_recording():
            known = {name.replace("__", "."): value for name, value in attributes.items() if value is not None}
            self._span.set_attributes(known)
            if failed:
                self._span.set_attribute("error.type", failed)
                self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()


class OtelTracer:
    """The tracer of a process, with a provider of its own: the one of whoever embeds us is left alone.

    Exporter, batches, sampler and resource are set by OpenTelemetry's own variables.

    Args:
        run: what tells the run from others.
    """

    def __init__(self, run: str) -> None:
        self._run, self._ids = run, _Ids()
        self._exporter = OTLPSpanExporter()
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False, id_generator=self._ids)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("moot")
        self._closing: asyncio.Task[None] | None = None

    def context(self, case_id: str, attempt: int) -> TraceContext:
        """See `tracing.Tracer.context`; sampled as a root span of that trace would be."""
        context = TraceContext.of(self._run, case_id, attempt)
        decision = self._provider.sampler.should_sample(Context(), context.trace_id, "debate").decision
        return context._replace(sampled=decision is Decision.RECORD_AND_SAMPLE)

    def debate(self, context: TraceContext) -> Span:
        """See `tracing.Tracer.debate`."""
        self._ids.root = context
        try:
            return OtelSpan(self._tracer, self._tracer.start_span("debate", Context()))
        finally:
            self._ids.root = None

    def ask(self, traceparent: str) -> Span:
        """See `tracing.Tracer.ask`."""
        context = TraceContext.read(traceparent)
        if context is None:
            return NO_SPAN
        flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if context.sampled else trace.TraceFlags.DEFAULT)
        asker = trace.NonRecordingSpan(trace.SpanContext(context.trace_id, context.span_id, True, flags))
        return OtelSpan(self._tracer, asker).child("ask")

    async def close(self) -> None:
        """See `tracing.Tracer.close`."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        flushing = asyncio.create_task(asyncio.to_thread(self._provider.force_flush))
        done, _ = await asyncio.wait([flushing], timeout=FLUSH_WITHIN_S)
        if not done:
            stop: Callable[[], None] = self._exporter.shutdown
            stop()  # which ends the wait before another try, and the connection
        await flushing
        await asyncio.to_thread(self._provider.shutdown)


def _resource() -> Resource:
    known = Resource.create()
    unnamed = str(known.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED)
    return known.merge(Resource({SERVICE_NAME: "moot"})) if unnamed else known
