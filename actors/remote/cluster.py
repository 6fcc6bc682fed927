"""The Ray actors of a run: thin wrappers around plain classes, found by name, restarted by Ray when they die."""

from __future__ import annotations

import asyncio
import gc
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from moot.actors.agent import Agent
from moot.actors.failpoints import failpoint
from moot.actors.household import (
    LocalCrew,
    Service,
    build_agent,
    build_gate,
    build_house,
    build_limiter,
    services,
)
from moot.actors.limits.envelopes import Grant, Report
from moot.actors.limits.gate import Gate
from moot.actors.log import configure_json
from moot.actors.moderator import Assignment, Moderator
from moot.actors.record.closing import Closing
from moot.actors.record.recorder import Recorder
from moot.actors.record.schema import JOURNAL
from moot.actors.record.signals_wire import encode_signals
from moot.actors.remote.crew import RemoteCrew
from moot.actors.remote.envelopes import decode_parcel, encode
from moot.actors.remote.peers import Peer
from moot.actors.remote.scribe import EventRow, RemoteScribe, VectorRow, unpack
from moot.actors.remote.station import Station
from moot.actors.roles import Roles
from moot.actors.spec import RunSpec
from moot.protocols.case import LabelledCase

_SET_UP_S = 600.0
"""Seconds that an actor may need to set itself up, weights and all, before what waits for it is in doubt."""

_GC_THRESHOLDS = (50_000, 50, 50)


class Roster(msgspec.Struct, frozen=True):
    """Where everybody of a run is to be found: actor names by what they do; no limiter when nothing is limited."""

    namespace: str
    writers: list[str]
    moderators: list[str]
    agents: list[tuple[Service, list[str]]]
    limiter: str = ""

    def peers(self, names: Sequence[str]) -> list[Peer]:
        """Peers by name."""
        return [Peer(name, self.namespace) for name in names]


class _Actor(ABC):
    """What every actor of a run has: it sets itself up on the first call, so a restarted one does too."""

    def __init__(self, spec: str, roster: Roster, *args: Any) -> None:
        self._spec = RunSpec.model_validate_json(spec)
        self._roster = roster
        self._args = args
        configure_json("info")
        self._setting_up: asyncio.Task[None] | None = None
        self._born = time.monotonic()

    async def ping(self) -> None:
        """Returns once the actor is set up; raises what went wrong if it cannot be."""
        await self._up()

    async def watch(self) -> None:
        """Never returns: a call that fails tells the caller that this process is gone."""
        await asyncio.Event().wait()

    async def _up(self) -> None:
        if self._setting_up is None:
            self._setting_up = asyncio.create_task(self._set_up_once())
        if not self._setting_up.done():
            await asyncio.shield(self._setting_up)
        self._setting_up.result()

    async def _set_up_once(self) -> None:
        await self._set_up()
        # Many debates are open for long: collecting them again and again took a third of a moderator's CPU.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)

    @abstractmethod
    async def _set_up(self) -> None:
        """Make what the actor works with."""

    def _new_gate(self) -> Gate | None:
        """This process's gate; None when nothing is limited."""
        if not self._roster.limiter:
            return None
        (limiter,) = self._roster.peers([self._roster.limiter])

        async def exchange(report: Report) -> Grant:
            raw = await limiter.call_until_done("exchange", msgspec.msgpack.encode(report))
            return msgspec.msgpack.decode(raw, type=Grant)

        return build_gate(self._spec, exchange)


class LimiterActor(_Actor):
    """Grants rates, concurrency and money to all processes of a run."""

    async def _set_up(self) -> None:
        self._limiter = build_limiter(self._spec)

    async def exchange(self, raw: bytes) -> bytes:
        """See `Limiter.exchange`."""
        await self._up()
        return msgspec.msgpack.encode(await self._limiter.exchange(msgspec.msgpack.decode(raw, type=Report)))


class WriterActor(_Actor):
    """A metrics actor: writes the record of the cases that hash to it and keeps the running aggregates."""

    async def _set_up(self) -> None:
        number: int = self._args[0]
        self._recorder = Recorder(Path(self._spec.folder), self._spec.epoch, number, self._spec.writers)
        await self._recorder.load()

    async def register(self, raw: bytes) -> None:
        """See `Recorder.register`."""
        await self._up()
        self._recorder.register(msgspec.msgpack.decode(raw, type=list[LabelledCase]))

    async def take_rows(self, packed: tuple[bytes, int] | None, rest: bytes) -> None:
        """Take replies (as `scribe.pack` packs them), events and embeddings."""
        await self._up()
        if packed is not None:
            self._recorder.add_replies(unpack(*packed, JOURNAL["replies"]))
        events, vectors = msgspec.msgpack.decode(rest, type=tuple[list[EventRow], list[VectorRow]])
        self._recorder.add_events(events)
        for case_id, attempt, encoder, text_hash, vector in vectors:
            self._recorder.add_vectors(case_id, attempt, encoder, [(text_hash, vector)])

    async def commit(self, raw: bytes) -> list[bool]:
        """See `Recorder.commit`."""
        await self._up()
        return await self._recorder.commit(msgspec.msgpack.decode(raw, type=list[Closing]))

    async def history(self, keys: list[tuple[str, int]]) -> bytes:
        """See `Recorder.history`."""
        await self._up()
        return msgspec.msgpack.encode(await self._recorder.history(keys))

    async def endings(self, case_ids: list[str]) -> bytes:
        """See `Recorder.endings`; encoded."""
        await self._up()
        return msgspec.msgpack.encode(await self._recorder.endings(case_ids))

    async def claim(self, key: str, lease_s: float) -> tuple[bool, bytes]:
        """See `Recorder.claim`."""
        await self._up()
        mine, history = await self._recorder.claim(key, lease_s)
        return mine, msgspec.msgpack.encode(history)

    async def has_shared(self, key: str) -> bool:
        """See `Recorder.has_shared`."""
        await self._up()
        return await self._recorder.has_shared(key)

    async def settle(self, key: str) -> None:
        """See `Claims.settle`."""
        await self._up()
        self._recorder.claims.settle(key)

    async def counts(self) -> bytes:
        """The writer's running totals, encoded."""
        await self._up()
        return msgspec.msgpack.encode(self._recorder.progress.counts)

    async def events_since(self, cursor: int) -> bytes:
        """Events after `cursor` and the next cursor, encoded."""
        await self._up()
        return msgspec.msgpack.encode(self._recorder.progress.events_since(cursor))

    async def signals(self, known: int) -> bytes:
        """The writer's signals, encoded; empty when they are still of `known` replies."""
        await self._up()
        keeper = self._recorder.signals
        return encode_signals(await keeper.signals()) if keeper.replies != known else b""

    async def flush(self) -> None:
        """See `Recorder.flush`."""
        await self._up()
        await self._recorder.flush()

    async def close(self, compact: bool) -> None:
        """See `Recorder.close`."""
        await self._up()
        await self._recorder.close(compact=compact)


class AgentActor(_Actor):
    """An agent or judge: one role family on one model."""

    async def _set_up(self) -> None:
        service: Service = tuple(self._args[0])
        self._family = "judge" if service[0].startswith("judge") else "agent"
        self._scribe = RemoteScribe(self._roster.peers(self._roster.writers), self._family)
        binding = services(Roles(self._spec.roles))[service]
        self._gate = self._new_gate()
        self._agent: Agent = await asyncio.to_thread(build_agent, self._spec, binding, self._scribe, self._gate)
        self._station = Station(self._agent.answer)

    async def exchange(self, blob: bytes) -> bytes:
        """See `Station.exchange`."""
        await self._up()
        parcel = decode_parcel(blob)
        if parcel.received:
            failpoint(f"{self._family}.sent_to_moderator")
        return encode(await self._station.exchange(parcel))

    async def drain(self) -> None:
        """Let no further call that needs leave start."""
        await self._up()
        if self._gate is not None:
            self._gate.drain()

    async def holds(self, sender: str, number: int) -> bool:
        """See `Station.holds`; True while the asks of the actor's last life are still to come, at most `_SET_UP_S`."""
        up = self._setting_up is not None and self._setting_up.done()
        if not up and time.monotonic() < self._born + _SET_UP_S:
            return True
        await self._up()
        return self._station.holds(sender, number)

    async def batch_sizes(self) -> dict[str, dict[int, int]]:
        """How many messages left together: calls by batch size, for replies and for the record's rows."""
        await self._up()
        return {"replies": dict(self._station.batch_sizes), "rows": dict(self._scribe.batch_sizes())}

    async def close(self) -> None:
        """Cancel what is under way; the rows of what was paid reach their writer first."""
        await self._up()
        await self._station.close()
        await self._agent.close()
        if self._gate is not None:
            await self._gate.close()
        await self._scribe.drained()


class ModeratorActor(_Actor):
    """A moderator; in the packed placement its agents and judges are in the same process."""

    async def _set_up(self) -> None:
        name, placement, protocol = self._args
        self._scribe = RemoteScribe(self._roster.peers(self._roster.writers), "agent")
        roles = Roles(self._spec.roles)
        self._remote: RemoteCrew | None = None
        self._local: LocalCrew | None = None
        self._gate = self._new_gate() if placement == "packed" else None
        if placement == "packed":
            self._local = await asyncio.to_thread(LocalCrew, self._spec, self._scribe, self._gate)
        else:
            agents = {(service[0], service[1]): self._roster.peers(names) for service, names in self._roster.agents}
            self._remote = RemoteCrew(roles, agents, self._scribe, name)
        crew = self._remote or self._local
        assert crew is not None
        places = max(1, self._spec.max_open // len(self._roster.moderators))
        self._house = build_house(self._spec, crew, self._scribe)
        self._moderator = Moderator(protocol, self._house, places, self._spec.debate_timeout_s)

    async def exchange(self, raw: bytes, wait: bool) -> bytes:
        """See `Moderator.exchange`."""
        await self._up()
        assignments = msgspec.msgpack.decode(raw, type=list[Assignment])
        return msgspec.msgpack.encode(await self._moderator.exchange(assignments, wait=wait))

    async def withdraw(self, keys: list[tuple[str, int]]) -> None:
        """See `Moderator.withdraw`."""
        await self._up()
        await self._moderator.withdraw(keys)

    async def batch_sizes(self) -> dict[str, dict[int, int]]:
        """How many messages left together: calls by batch size, for asks and for the record's rows."""
        await self._up()
        asks = self._remote.batch_sizes() if self._remote is not None else Counter[int]()
        return {"asks": dict(asks), "rows": dict(self._scribe.batch_sizes())}

    async def drain(self, seconds: float) -> None:
        """See `Moderator.drain`."""
        await self._up()
        await self._moderator.drain(seconds)
        await self._scribe.drained()

    async def close(self) -> None:
        """Put every debate aside and release the models of the packed placement."""
        await self._up()
        await self._moderator.close()
        if self._local is not None:
            await self._local.close()
        if self._gate is not None:
            await self._gate.close()
        await self._house.close()
        await self._scribe.drained()
