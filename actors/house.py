"""What all debates of a process share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec

from moot.actors.encoders.interface import Encoder
from moot.actors.models.off_loop import off_loop_if_long
from moot.actors.ports import Classifier, Crew, Library, Scribe
from moot.actors.reuse import ReplyCache
from moot.actors.roles import Roles
from moot.actors.sent_request import earlier_fingerprints, fingerprint, fingerprint_of_role
from moot.actors.tracing import UNWATCHED, Watch
from moot.protocols.messages import Answered, Ask
from moot.protocols.templates import Templates


class Asking:
    """How many asks of a process are under way."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


@dataclass(frozen=True, slots=True)
class House:
    """What all debates of a process share.

    Attributes:
        crew: who answers.
        scribe: who writes.
        attended: whether a person answers `consult`; otherwise it answers `go on`.
        drain: set when no new ask may start: debates stand still until they are put aside.
        asking: the asks under way.
        shared: shared replies that this process has seen, by pseudo case id.
        reuse: another run's replies, which answer equal asks; None without `--reuse`.
        library: the passages that the run's debates may search; None when it has no documents.
        classifier: reads judges' summaries; None when the run has none.
        watch: what the process is watched by.
    """

    crew: Crew
    scribe: Scribe
    roles: Roles
    templates: Templates
    encoder: Encoder
    seed: int
    attended: bool
    drain: asyncio.Event
    asking: Asking = field(default_factory=Asking)
    shared: dict[str, asyncio.Future[Answered | None]] = field(default_factory=dict)
    reuse: ReplyCache | None = None
    library: Library | None = None
    classifier: Classifier | None = None
    watch: Watch = UNWATCHED

    async def fingerprinted(self, ask: Ask) -> Ask:
        """The ask with its fingerprint, as its role is bound and its template written in this run.

        A long one leaves the event loop. The earlier ones are worked out only where a record may have them.
        """
        binding, template = self.roles.binding(ask.role), self.templates.hash(ask.template)
        mark = await off_loop_if_long(ask.slots, fingerprint, ask, binding, template)
        if binding.structured is None and self.reuse is None:
            return msgspec.structs.replace(ask, fingerprint=mark)
        earlier = await off_loop_if_long(ask.slots, earlier_fingerprints, ask, binding, template)
        return msgspec.structs.replace(ask, fingerprint=mark, earlier_fingerprints=earlier)

    async def shared_fingerprint(self, ask: Ask) -> str:
        """What the place of a shared reply hangs on: it stays where records have it."""
        binding, template = self.roles.binding(ask.role), self.templates.hash(ask.template)
        return await off_loop_if_long(ask.slots, fingerprint_of_role, ask, binding, template)

    async def close(self) -> None:
        """Let go what debates look up; once none is left."""
        await self.encoder.close()
        if self.classifier is not None and self.classifier.encoder is not None:
            await self.classifier.encoder.close()
        if self.library is not None:
            await self.library.close()
