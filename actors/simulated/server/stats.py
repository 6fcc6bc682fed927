"""Statistics of the simulated server: served calls, and injected faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from moot.actors.models.interface import ModelReply


class ServedCalls(msgspec.Struct):
    """Counters of served calls and their tokens."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, reply: ModelReply) -> None:
        """Count one reply."""
        self.calls += 1
        self.prompt_tokens += reply.usage.prompt_tokens or 0
        self.completion_tokens += reply.usage.completion_tokens or 0


class SimulationStats(ServedCalls):
    """Counters over all steps, and counts of injected faults.

    Attributes:
        steps: number of served steps.
        by_step: served calls by step key; omitted from `GET /stats/totals`.
        in_flight: calls without a reply yet.
        failed, limited, garbled: calls answered with 500, with 429, and with a garbled reply.
        hung: calls that were never answered.
        pictures, picture_bytes: pictures in served calls, and their total bytes as received.
        embedding_calls, embedded_texts: served requests for embeddings, and their texts.
        cut: served calls whose response was cut off, so that their client does not know the usage.
    """

    steps: int = 0
    by_step: dict[str, ServedCalls] = {}
    in_flight: int = 0
    failed: int = 0
    limited: int = 0
    garbled: int = 0
    hung: int = 0
    pictures: int = 0
    picture_bytes: int = 0
    embedding_calls: int = 0
    embedded_texts: int = 0
    cut: ServedCalls = msgspec.field(default_factory=ServedCalls)

    @contextmanager
    def track_in_flight(self) -> Iterator[None]:
        """Context manager that counts a call as in flight."""
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
