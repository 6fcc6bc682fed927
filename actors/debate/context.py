"""Debate context: the shared services of a process (agent pool, record client, encoder, retriever, classifier).

The floor uses these interfaces in every runtime; only their implementations differ.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from moot.actors.agent.agent import Sink
from moot.actors.agent.request_fingerprint import earlier_fingerprints, fingerprint, fingerprint_of_role
from moot.actors.agent.roles import Roles
from moot.actors.debate.first_asks import FirstAsks
from moot.actors.debate.reuse import ReplyCache
from moot.actors.encoders.interface import Encoder
from moot.actors.models.off_loop import off_loop_if_long
from moot.actors.record.debate_result import DebateResult
from moot.actors.record.recovery import History, vector_key
from moot.actors.telemetry.telemetry import NO_TELEMETRY, Telemetry
from moot.protocols.case import Case
from moot.protocols.embeddings import text_hashes
from moot.protocols.errors import EncoderFailed
from moot.protocols.lookups import Classified, Passage
from moot.protocols.messages import Ask, AskResult
from moot.protocols.plain_replies import has_plain_form
from moot.protocols.reply_ids import reply_id
from moot.protocols.templates import Templates


class AgentPool(Protocol):
    """Pool of the agents and judges of a run."""

    async def answer(self, ask: Ask) -> AskResult:
        """Answer an ask; failures are values. Cancelling also stops the agent's work on it."""
        ...

    async def drain(self) -> None:
        """Start no further limited calls: asks that wait for the limiter return unpaid."""
        ...


class RecordClient(Sink, Protocol):
    """Client of the record, for moderators."""

    async def commit(self, result: DebateResult) -> bool:
        """Record a verdict; True once durable, False when the journal may lack a reply of the debate or a note of
        it."""
        ...

    def end(self, case_id: str, attempt: int) -> None:
        """Keep nothing more of a debate, after its last row; never waits."""
        ...

    async def history(self, case_id: str, attempt: int) -> History:
        """Recorded part of a debate."""
        ...

    async def acquire_lease(self, key: str) -> tuple[bool, History]:
        """Acquire the lease of a shared reply: whether the caller pays for it (False once it is recorded), and its
        recorded part."""
        ...

    async def has_shared(self, key: str) -> bool:
        """Whether a shared reply is durable; does not wait for it."""
        ...

    async def release_lease(self, key: str) -> None:
        """Release the lease of a shared reply."""
        ...

    def put_vectors(self, case_id: str, attempt: int, encoder: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Store a debate's embeddings by text hash, as float32 bytes; never waits."""
        ...


class Retriever(Protocol):
    """Retriever of the run's documents, as chunks embedded by the run's encoder."""

    async def search(self, vector: npt.NDArray[np.float32], n: int) -> list[Passage]:
        """The `n` passages nearest to a unit vector, best first; ties by index. Exact."""
        ...

    async def close(self) -> None:
        """Close the files."""
        ...


class Classifier(Protocol):
    """Binary classifier: detects hallucinated claims from a judge's summary.

    Attributes:
        encoder: of its own; None when it reads vectors of the run's encoder.
    """

    @property
    def encoder(self) -> Encoder | None: ...

    def p_hallucinated(self, vector: npt.NDArray[np.float32]) -> float:
        """Probability in [0, 1] that the claim is hallucinated, from the vector of the summary."""
        ...

    def trained_on(self, claim: str) -> bool:
        """Whether the claim, in any spelling and with any evidence, was a training example."""
        ...


class InFlightAsks:
    """Counter of the asks in flight in a process."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


@dataclass(frozen=True, slots=True)
class DebateContext:
    """Shared services of the debates of a process.

    Attributes:
        agents: answers the asks.
        record: receives the rows.
        attended: whether a person answers `consult`; otherwise the decision is `go on`.
        drain: set when no new ask may start: debates wait until they are cancelled.
        in_flight: counts the asks in flight.
        shared: shared replies that this process knows, by pseudo case id.
        reuse: replies of another run, which answer equal asks; None without `--reuse`.
        first_asks: admits paid asks, and stops the run if the first ones of a role are in vain.
        retriever: searches the run's documents; None without documents.
        classifier: classifies judges' summaries; None for a run without one.
        telemetry: metrics and traces of the process.
    """

    agents: AgentPool
    record: RecordClient
    roles: Roles
    templates: Templates
    encoder: Encoder
    seed: int
    attended: bool
    drain: asyncio.Event
    in_flight: InFlightAsks = field(default_factory=InFlightAsks)
    shared: dict[str, asyncio.Future[AskResult | None]] = field(default_factory=dict)
    reuse: ReplyCache | None = None
    first_asks: FirstAsks = field(default_factory=FirstAsks)
    retriever: Retriever | None = None
    classifier: Classifier | None = None
    telemetry: Telemetry = NO_TELEMETRY

    def form_of(self, role: str, template: str, reply: type[BaseModel]) -> tuple[str, bool]:
        """Template of an ask, and whether its reply is plain text: where the role's model writes no JSON."""
        if not has_plain_form(reply) or not self.roles.binding(role).writes_prose(reply_id(reply)):
            return template, False
        return self.templates.plain_form(template), True

    async def fingerprinted(self, ask: Ask) -> Ask:
        """Copy of the ask with its fingerprint, for its role's binding and the run's template.

        A long one is hashed off the event loop. Earlier forms are computed only where a record may contain them.
        """
        binding, template = self.roles.binding(ask.role), self.templates.rendered_hash(ask.template)
        mark = await off_loop_if_long(ask.slots, fingerprint, ask, binding, template)
        if binding.structured is None and self.reuse is None:
            return msgspec.structs.replace(ask, fingerprint=mark)
        earlier = await off_loop_if_long(ask.slots, earlier_fingerprints, ask, binding, template)
        return msgspec.structs.replace(ask, fingerprint=mark, earlier_fingerprints=earlier)

    async def shared_fingerprint(self, ask: Ask) -> str:
        """Fingerprint that keys a shared reply, in the form of earlier records."""
        binding, template = self.roles.binding(ask.role), self.templates.rendered_hash(ask.template)
        return await off_loop_if_long(ask.slots, fingerprint_of_role, ask, binding, template)

    async def close(self) -> None:
        """Close encoder, retriever and classifier; after the last debate has ended."""
        await self.encoder.close()
        if self.classifier is not None and self.classifier.encoder is not None:
            await self.classifier.encoder.close()
        if self.retriever is not None:
            await self.retriever.close()


class Lookups:
    """Lookups of one debate; every vector is computed once, recorded, and read back on replay.

    Args:
        case: the case.
        attempt: of the debate.
        context: the process's shared services.
        vectors: from the journal, as float32 bytes by `vector_key`.
    """

    def __init__(self, case: Case, attempt: int, context: DebateContext, vectors: Mapping[str, bytes]) -> None:
        self.case, self.attempt, self._context = case, attempt, context
        self._vectors = dict(vectors)

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """See `Floor.embed`."""
        return await self._embed(self._context.encoder, texts)

    async def retrieve(self, query: str, documents: Sequence[str], *, n: int = 5) -> list[int]:
        """See `Floor.retrieve`."""
        vectors = await self.embed([query, *documents])
        nearness = vectors[1:] @ vectors[0]
        return [int(i) for i in np.argsort(-nearness, kind="stable")[:n]]

    async def search(self, query: str, *, n: int = 5) -> list[Passage]:
        """See `Floor.search`."""
        library = self._context.retriever
        return [] if library is None else await library.search((await self.embed([query]))[0], n)

    async def classify(self, text: str) -> Classified | None:
        """See `Floor.classify`."""
        classifier = self._context.classifier
        if classifier is None:
            return None
        (vector,) = await self._embed(classifier.encoder or self._context.encoder, [text])
        return Classified(
            p_hallucinated=classifier.p_hallucinated(vector),
            trained_on=classifier.trained_on(self.case.question),
        )

    async def _embed(self, encoder: Encoder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        hashes = text_hashes(texts)
        keys = [vector_key(encoder.name, each) for each in hashes]
        missing = [i for i, key in enumerate(keys) if key not in self._vectors]
        if missing:
            rows = await encoder.encode([texts[i] for i in missing])
            new = [(hashes[i], row.tobytes()) for i, row in zip(missing, rows, strict=True)]
            self._vectors |= {keys[i]: raw for i, (_, raw) in zip(missing, new, strict=True)}
            self._context.record.put_vectors(self.case.id, self.attempt, encoder.name, new)
        vectors = [np.frombuffer(self._vectors[key], np.float32) for key in keys]
        if len({len(vector) for vector in vectors}) > 1:
            raise EncoderFailed(encoder.name, "unparsable", "its vectors are not of the size of those in the record")
        return np.stack(vectors) if vectors else np.empty((0, encoder.dimension or 0), np.float32)
