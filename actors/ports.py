"""What a debate needs from the world around it: someone who answers, someone who writes, and what is looked up. One
floor stands on these ports in every runtime; only what is behind them differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from moot.actors.encoders.interface import Encoder
from moot.actors.record.closing import Closing
from moot.actors.record.recovery import History
from moot.protocols.lookups import Passage
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
        """Record a verdict; True once durable, False when the journal lacks a reply or may lack a note of it."""
        ...

    async def history(self, case_id: str, attempt: int) -> History:
        """What is recorded of a debate so far."""
        ...

    async def claim(self, key: str) -> tuple[bool, History]:
        """Whether the caller shall pay for a shared reply, False once it is recorded; and what is recorded of it."""
        ...

    async def has_shared(self, key: str) -> bool:
        """Whether a shared reply is durable; does not wait for one that is still to come."""
        ...

    async def settle(self, key: str) -> None:
        """Give a claim back."""
        ...

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Store a debate's embeddings by text hash, as float32 bytes; never waits."""
        ...


class Library(Protocol):
    """The documents of a run, cut into passages and embedded by the run's encoder."""

    async def search(self, vector: npt.NDArray[np.float32], n: int) -> list[Passage]:
        """The `n` passages nearest to a unit vector, best first; ties by place. Exact."""
        ...

    async def close(self) -> None:
        """Let the files go."""
        ...


class Classifier(Protocol):
    """Tells supported claims from hallucinated ones by a judge's summary.

    Attributes:
        encoder: of its own; None when it reads vectors of the run's encoder.
    """

    @property
    def encoder(self) -> Encoder | None: ...

    def p_hallucinated(self, vector: npt.NDArray[np.float32]) -> float:
        """The probability that the claim is hallucinated, in [0, 1], from the vector of the summary."""
        ...

    def trained_on(self, claim: str) -> bool:
        """Whether it was trained on this claim, in whatever spelling, with whatever evidence."""
        ...
