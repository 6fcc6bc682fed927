"""Calling Ray actors that may die and come back: found by name, called again only where that is harmless."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import msgspec
import ray
import structlog
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from moot.actors.remote.lives import Life, loss_of
from moot.protocols.errors import ActorGone, MootError

_log = structlog.get_logger(__name__)
_POLL_S = 0.1
_ERROR_LINE = re.compile(r"[\w.]*(Error|Exception): ")
_DEAD_FOR_S = 15.0
"""Ray says of an actor that it restarts that it is not available; that it is dead only for a moment, or for ever."""

BACK_WITHIN_S = 90.0


class PeerLost(Exception):
    """A call did not come through: the actor died, is being restarted or cannot be reached.

    Args:
        why: what Ray says.
        dead: whether Ray calls the actor dead, and not only away.
    """

    def __init__(self, why: str, dead: bool) -> None:
        super().__init__(why, dead)
        self.why, self.dead = why, dead


class Peer:
    """A named actor of this run.

    Args:
        name: the actor's name.
        namespace: the run's Ray namespace.
        handle: of the actor, for who has created it; None looks it up by its name.
    """

    def __init__(self, name: str, namespace: str, handle: Any = None) -> None:
        self.name, self._namespace = name, namespace
        self._handle = handle

    async def handle(self) -> Any:
        """The actor's handle."""
        if self._handle is None:
            self._handle = await asyncio.to_thread(ray.get_actor, self.name, namespace=self._namespace)
        return self._handle

    async def call(self, method: str, *args: Any) -> Any:
        """One call; what the method raised comes back as itself.

        Raises:
            PeerLost: when the call or its result was lost.
        """
        if not ray.is_initialized():  # Ray would start a new cluster to find the actor in
            raise PeerLost("Ray was shut down", True)
        try:
            handle = await self.handle()
        except ValueError as error:  # Ray has forgotten the name, as it does when an actor has died for good
            raise PeerLost(f"there is no actor {self.name} any more", True) from error
        try:
            return await getattr(handle, method).remote(*args)
        except RayTaskError as error:
            raise unwrapped(error) from None
        except RayError as error:
            raise PeerLost(_reason(error), isinstance(error, ActorDiedError)) from error

    async def first_call(self, method: str = "ping") -> None:
        """Wait until the actor is set up, or with `where` only until it has a place.

        Raises:
            ActorGone: when it dies before that.
        """
        try:
            await self.call(method)
        except PeerLost as error:
            raise ActorGone(f"the actor {self.name} could not be started: {error.why}") from error

    async def call_until_done(self, method: str, *args: Any) -> Any:
        """Call an idempotent method, and again when the actor was lost meanwhile and is back."""
        while True:
            try:
                return await self.call(method, *args)
            except PeerLost:
                await self.back()

    async def back(self) -> None:
        """Wait until the actor answers.

        Raises:
            ActorGone: when it is not back in time.
        """
        clock = asyncio.get_running_loop().time
        called_dead = 0.0  # since when Ray says nothing but that
        try:
            async with asyncio.timeout(BACK_WITHIN_S):
                while not called_dead or clock() - called_dead < _DEAD_FOR_S:
                    try:
                        await self.call("ping")
                        return
                    except PeerLost as lost:
                        called_dead = (called_dead or clock()) if lost.dead else 0.0
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            pass
        raise ActorGone(f"the actor {self.name} died and did not come back; the same command goes on from the record")

    async def watch(self, lost: Callable[[], Any]) -> None:
        """Call `lost` (and await it) each time the actor has died and is back; returns never.

        The log says what had become of it: whether its process or its node died, or it was only out of reach.
        """
        watching = asyncio.ensure_future(self.call("watch"))
        life = await self._life()
        try:
            while True:
                try:
                    await watching
                    return
                except PeerLost as loss:
                    _log.warning("an actor cannot be reached", actor=self.name, why=loss.why)
                await self.back()
                watching = asyncio.ensure_future(self.call("watch"))  # first: it may die again while `lost` works
                before, life = life, await self._life()
                if before is not None and life is not None:
                    how = await loss_of(before, life)
                    _log.warning("an actor is back", actor=self.name, was=how, node=life.node, pid=life.pid)
                await lost()
        finally:
            watching.cancel()

    async def _life(self) -> Life | None:
        """Where and as what the actor lives; None when it is gone again."""
        try:
            raw = await self.call("where")
        except PeerLost:
            return None
        return None if raw is None else msgspec.msgpack.decode(raw, type=Life)


def _reason(error: Exception) -> str:
    """What is at the root of an actor's death: the last error in the traceback that Ray gives as text."""
    lines = str(error).splitlines() or [type(error).__name__]
    return next((line for line in reversed(lines) if _ERROR_LINE.match(line)), lines[0])


def unwrapped(error: RayTaskError) -> BaseException:
    """What the remote method raised, if it is one of ours; else Ray's error."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, MootError) else error
