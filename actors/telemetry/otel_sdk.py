"""OpenTelemetry SDK with its own tracer provider, separate from that of the embedding program."""

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


class _Ids(RandomIdGenerator):
    """Id generator: random ids, except for given ones of a root span. Not thread-safe: for use in one event loop."""

    root: trace.SpanContext | None = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self.root is None else self.root.trace_id

    def generate_span_id(self) -> int:
        return super().generate_span_id() if self.root is None else self.root.span_id


class SdkProvider:
    """Tracer provider, exporter and tracer of a process."""

    def __init__(self) -> None:
        resource, self._ids = Resource.create(), _Ids()
        if str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "moot"}))
        self._exporter = OTLPSpanExporter()
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=self._ids)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self.tracer = self._provider.get_tracer("moot")

    def samples(self, trace_id: int) -> bool:
        """Whether a root span of that trace is exported."""
        decision = self._provider.sampler.should_sample(Context(), trace_id, "debate").decision
        return decision is Decision.RECORD_AND_SAMPLE

    def root(self, context: trace.SpanContext) -> trace.Span:
        """Start the root span of a debate, with the ids of `context`."""
        self._ids.root = context
        try:
            return self.tracer.start_span("debate", Context())
        finally:
            self._ids.root = None

    async def close(self, within_s: float) -> None:
        """Export the remaining spans, within `within_s` seconds, and shut down."""
        flushing = asyncio.create_task(asyncio.to_thread(self._provider.force_flush))
        done, _ = await asyncio.wait([flushing], timeout=within_s)
        if not done:
            stop: Callable[[], None] = self._exporter.shutdown
            stop()  # ends the backoff before a retry, and the connection
        await flushing
        await asyncio.to_thread(self._provider.shutdown)
