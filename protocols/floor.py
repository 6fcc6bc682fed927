"""Floor: everything that a protocol can ask for. A protocol awaits only this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from moot.protocols.case import Case, Image
from moot.protocols.events import DebateEvent
from moot.protocols.lookups import Classified, Passage
from moot.protocols.messages import (
    Decision,
    Decoding,
    Event,
    Failure,
    Form,
    Judgment,
    Message,
    Missing,
    Slots,
    Turn,
)

R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request(Generic[R]):
    """One ask of a fan-out; see the arguments of `Floor.ask`."""

    role: str
    template: str
    slots: Slots
    reply: type[R]
    path: str
    sample: int = 0
    images: Sequence[Image] = ()
    decoding: Decoding | None = None


@dataclass(frozen=True, slots=True)
class Brief:
    """Brief for judges: a template and its slots. `variants` of `Floor.judge` are merged into the slots."""

    template: str
    slots: Slots
    role: str = "judge"


class Floor(Protocol):
    """Services that a protocol may ask for.

    Every method that can change a later step takes a `path`, unique in its debate. Replies are journalled under (case,
    attempt, path); after a crash the protocol runs again and gets the recorded replies, so it must not use a clock, a
    random source or a race of its own.
    """

    case: Case
    seed: int
    """Seed of this case: derived from the run's seed and the case's id."""

    async def ask(
        self,
        role: str,
        template: str,
        slots: Slots,
        *,
        reply: type[R],
        path: str,
        sample: int = 0,
        images: Sequence[Image] = (),
        decoding: Decoding | None = None,
    ) -> Turn[R]:
        """Ask one role. Raises `AskFailed` without a usable reply, `PathReused` on a used path."""
        ...

    async def ask_all(self, requests: Sequence[Request[R]]) -> list[Turn[R] | Failure]:
        """Ask several roles at once; results in the order of the requests, failures as values."""
        ...

    async def judge(
        self, brief: Brief, *, path: str, variants: Sequence[Slots] = ({},), passes: int = 1
    ) -> list[Judgment | Missing]:
        """Every judge of the panel on every variant, `passes` times, all in flight together.

        The order of results is judge, then variant, then pass.
        """
        ...

    def panel(self, role: str = "judge") -> list[str]:
        """Full names of a role family's members, in order: `judge/0`, `judge/1` ... Part of the run's configuration."""
        ...

    async def consult(self, form: Form, *, path: str) -> Decision:
        """Ask a person. Unattended runs answer `go on`; attended ones may park the debate until there is an answer."""
        ...

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors, shape (len(texts), d), from the run's encoder; stored, so that a replay gets the same."""
        ...

    async def retrieve(self, query: str, documents: Sequence[str], *, n: int = 5) -> list[int]:
        """Indices of the `n` documents nearest to `query` by cosine, best first; ties by position."""
        ...

    async def search(self, query: str, *, n: int = 5) -> list[Passage]:
        """The `n` passages of the run's library nearest to `query` by cosine, best first; ties by index.

        Exact, and the same on a replay. Empty when the run has no library.
        """
        ...

    async def classify(self, text: str) -> Classified | None:
        """Result of the run's classifier for a text; None when the run has none."""
        ...

    async def compute(self, function: Callable[..., T], *args: Any) -> T:
        """Run a pure, CPU-heavy function off the event loop."""
        ...

    async def shared(self, key: str, request: Request[R]) -> Turn[R]:
        """One reply for every case of the run that asks with this key; paid for once. Raises like `ask`."""
        ...

    async def shared_all(self, requests: Sequence[tuple[str, Request[R]]]) -> list[Turn[R] | Failure]:
        """Several shared replies at once, each with its key; results in the order of the requests, failures as
        values."""
        ...

    async def sent(self, turn: Turn[Any]) -> tuple[Message, ...]:
        """Messages that produced `turn`, exactly as they were sent to the model."""
        ...

    def note(self, event: Event | DebateEvent) -> None:
        """Put an event into the record (signals, decisions); never changes a later step."""
        ...
