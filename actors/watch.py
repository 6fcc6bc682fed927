"""What a process is watched by: its meter and its tracer."""

from __future__ import annotations

from dataclasses import dataclass

from moot.actors.meter import SILENT, Meter
from moot.actors.tracing import UNTRACED, Tracer


@dataclass(frozen=True, slots=True)
class Watch:
    """A meter and a tracer; by default neither does anything."""

    meter: Meter = SILENT
    tracer: Tracer = UNTRACED


UNWATCHED = Watch()
