"""Whether spans are exported, as the environment says: where OpenTelemetry is configured in the usual way, by its own
variables; elsewhere nothing of it is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec

from moot.actors.spec import RunSpec
from moot.actors.tracing import Tracer, Untraced

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORTER, _OFF = "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN = "http/protobuf"


def make_tracer(spec: RunSpec, environ: Mapping[str, str] = os.environ) -> Tracer:
    """The tracer of this process: of OpenTelemetry where that is configured and can be had."""
    run = spec.store or spec.folder
    if not exporters(environ) or untraceable(environ):
        return Untraced(run)
    from moot.actors.otel_tracing import OtelTracer

    return OtelTracer(run)


def exporters(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment asks for traces to be exported by OTLP."""
    if environ.get(_OFF, "").strip().lower() == "true":
        return False
    named = [name.strip() for name in environ.get(_EXPORTER, "").lower().split(",") if name.strip()]
    return "otlp" in named if named else any(environ.get(name) for name in _ENDPOINTS)


def untraceable(environ: Mapping[str, str] = os.environ) -> str:
    """Why no trace can be exported although the environment asks for it; empty when one can, or none is asked for."""
    if not exporters(environ):
        return ""
    spoken = next((environ[name] for name in _PROTOCOLS if environ.get(name)), _SPOKEN)
    if spoken != _SPOKEN:
        return f"only {_SPOKEN} is spoken, not {spoken}: set {_PROTOCOLS[1]}={_SPOKEN}"
    try:
        found = find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:
        found = None
    return "" if found else "it needs an extra: pip install 'moot[tracing]'"
