"""What every Ray actor of a run has in common: it sets itself up, answers to pings, and can be watched.

The actors are thin wrappers around plain classes, found by name, restarted by Ray when they die.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import msgspec
import ray

from moot.actors.garbage import collect_seldom
from moot.actors.household import (
    build_gate,
)
from moot.actors.limits.envelopes import Grant, Report
from moot.actors.limits.gate import Gate
from moot.actors.log import configure_json
from moot.actors.meter import ACTOR_RESTARTS, Meter
from moot.actors.remote.lives import Life
from moot.actors.remote.ray_meter import RayMeter
from moot.actors.remote.roster import Roster
from moot.actors.spec import RunSpec


class RunActor(ABC):
    """What every actor of a run has: it sets itself up on the first call, so a restarted one does too."""

    kind: ClassVar[str]

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

    async def where(self) -> bytes:
        """The actor's `Life`, encoded: at once, set up or not."""
        return msgspec.msgpack.encode(Life.here())

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
        self._meter = self._new_meter()
        await self._set_up()
        collect_seldom()

    def _new_meter(self) -> Meter:
        """This process's meter, which is told first whether the actor was started again."""
        meter = RayMeter(self._spec.protocol)
        with warnings.catch_warnings():  # Ray's own property asks by a method that Ray deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            restarted = ray.get_runtime_context().was_current_actor_reconstructed
        meter.add(ACTOR_RESTARTS, float(restarted), self.kind)
        return meter

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
