"""Telemetry of a process: its meter and its tracer, with one OpenTelemetry trace per debate.

OpenTelemetry's API is always loaded, its SDK only if the environment requests it. A trace's id is derived from the
run's folder, the case and its attempt, so that a debate that is replayed after a crash, or resumed later, has one
trace. OpenTelemetry's environment variables configure exporter, batches, sampler and resource.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from moot.actors.telemetry.meter import SILENT, Meter

FLUSH_WITHIN_S = 5.0
"""Timeout in seconds for exporting the last spans; spans not exported by then are lost."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SUPPORTED = "http/protobuf"
_W3C = TraceContextTextMapPropagator()


def exporters(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment requests export of traces by OTLP."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    names = [name.strip() for name in environ.get("OTEL_TRACES_EXPORTER", "").lower().split(",") if name.strip()]
    return "otlp" in names if names else any(environ.get(name) for name in _ENDPOINTS)


def untraceable(environ: Mapping[str, str] = os.environ) -> str:
    """Reason why traces cannot be exported although the environment requests it; empty if they can, or are not
    requested."""
    if not exporters(environ):
        return ""
    requested = next((environ[name] for name in _PROTOCOLS if environ.get(name)), _SUPPORTED)
    if requested != _SUPPORTED:
        return f"protocol {requested} is not supported: set {_PROTOCOLS[1]}={_SUPPORTED}"
    try:
        package = find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:
        package = None
    return "" if package else "tracing needs an extra: pip install 'moot[tracing]'"


class Span:
    """OpenTelemetry span; exported when it ends, if it is sampled."""

    __slots__ = ("_span", "_tracer")

    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer, self._span = tracer, span

    def child(self, name: str) -> Span:
        """Start a child span."""
        if not self._span.get_span_context().is_valid:
            return self
        return Span(self._tracer, self._tracer.start_span(name, trace.set_span_in_context(self._span, Context())))

    def end(self, failed: str = "", **attributes: str | int | float | bool | None) -> None:
        """End the span.

        Args:
            failed: kind of failure; empty without failure.
            attributes: the span's attributes; `__` in a name is replaced by a dot, and None values are omitted.
        """
        if self._span.is_recording():
            known = {name.replace("__", "."): value for name, value in attributes.items() if value is not None}
            self._span.set_attributes(known | ({"error.type": failed} if failed else {}))
            if failed:
                self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()


NO_SPAN = Span(trace.NoOpTracer(), trace.INVALID_SPAN)


class Tracing:
    """Tracer of the debates of a process. Starting and ending spans never blocks.

    Args:
        run: id of the run: its folder. An empty one disables tracing.
        environ: environment variables.
    """

    def __init__(self, run: str = "", environ: Mapping[str, str] = os.environ) -> None:
        self._run = run
        self._tracer: trace.Tracer = NO_SPAN._tracer
        self._sdk: Any = None
        self._closing: asyncio.Task[None] | None = None
        if run and exporters(environ) and not untraceable(environ):
            from moot.actors.telemetry.otel_sdk import SdkProvider

            self._sdk = SdkProvider()
            self._tracer = self._sdk.tracer

    def context(self, case_id: str, attempt: int) -> SpanContext:
        """Context of a debate's root span: the same whenever the debate resumes, with the sampling decision."""
        digest = blake2b("\0".join((self._run, case_id, str(attempt))).encode("utf-8", "surrogatepass"), digest_size=24)
        trace_id, span_id = (int.from_bytes(part, "big") or 1 for part in (digest.digest()[:16], digest.digest()[16:]))
        sampled = self._sdk is not None and self._sdk.samples(trace_id)
        return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(int(sampled)))

    def traceparent(self, case_id: str, attempt: int) -> str:
        """The same context as a W3C `traceparent`."""
        carrier: dict[str, str] = {}
        at = trace.set_span_in_context(trace.NonRecordingSpan(self.context(case_id, attempt)), Context())
        _W3C.inject(carrier, at)
        return carrier["traceparent"]

    def debate(self, case_id: str, attempt: int) -> Span:
        """Root span of a debate."""
        if self._sdk is None:
            return NO_SPAN
        return Span(self._tracer, self._sdk.root(self.context(case_id, attempt)))

    def ask(self, traceparent: str) -> Span:
        """Span of an ask, as a child of its `traceparent`; `NO_SPAN` without a valid one."""
        if self._sdk is None:
            return NO_SPAN
        above = trace.get_current_span(_W3C.extract({"traceparent": traceparent}, Context()))
        return Span(self._tracer, above).child("ask")

    async def close(self) -> None:
        """Export the remaining spans, within `FLUSH_WITHIN_S` seconds; call it after the last span. Idempotent."""
        if self._sdk is None:
            return
        if self._closing is None:
            self._closing = asyncio.create_task(self._sdk.close(FLUSH_WITHIN_S))
        await asyncio.shield(self._closing)


UNTRACED = Tracing()


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Meter and tracer of a process; by default both are no-ops."""

    meter: Meter = SILENT
    tracer: Tracing = UNTRACED


NO_TELEMETRY = Telemetry()
