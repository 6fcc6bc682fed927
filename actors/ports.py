"""What a debate needs from the world around it: someone who answers, and someone who writes. One floor stands on these
two ports in every runtime; only what is behind them differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from moot.actors.record.closing import Closing
from moot.actors.record.recovery import History
from moot.protocols.messages import Answered, Ask, Event


class Crew(Protocol):
    """The agents and judges of a run."""

    async def answer(self, ask: Ask) -> Answered:
        """Have an ask answered; failures are values. Cancelling really stops the work at its source."""
        ...

    async def drain(self) -> None:
        """Let no further call that needs leave start: asks that wait for it are given back unpaid."""
        ...


class Scribe(Protocol):
    """The record, as moderators and agents see it."""

    def put_reply(self, case_id: str, columns: dict[str, Any]) -> None:
        """Take one row of the stream `replies`; never waits."""
        ...

    def put_event(self, case_id: str, attempt: int, event: Event) -> None:
        """Take an event; never waits."""
        ...

    async def commit(self, closing: Closing) -> bool:
        """Record a verdict; True once durable, False when the journal lacks a reply that it rests on."""
        ...

    async def history(self, case_id: str, attempt: int) -> History:
        """What is recorded of a debate so far."""
        ...

    async def claim(self, key: str) -> bool:
        """Whether the caller shall pay for a shared reply; False once it is recorded."""
        ...

    async def settle(self, key: str) -> None:
        """Give a claim back."""
        ...

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Store a debate's embeddings by text hash, as float32 bytes; never waits."""
        ...
