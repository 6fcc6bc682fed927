"""Calls to Ray actors that may restart: looked up by name, retried only where a call is idempotent."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import msgspec
import ray
import structlog
from ray.exceptions import ActorDiedError, RayActorError, RayError, RayTaskError

from moot.protocols.errors import ActorGone, MootError

Loss = Literal["its node died", "its process died", "it was out of reach and has not died"]


class Incarnation(msgspec.Struct, frozen=True):
    """Incarnation of an actor: its process, until it dies.

    Attributes:
        node: id of its node.
        worker: id of its process, never reused.
        pid: of its process, on its node.
    """

    node: str
    worker: str
    pid: int

    @classmethod
    def current(cls) -> Incarnation:
        """Incarnation of the calling actor."""
        context = ray.get_runtime_context()
        return cls(context.get_node_id(), context.get_worker_id(), os.getpid())


async def loss_reason(before: Incarnation, after: Incarnation) -> Loss:
    """Reason why an actor that answers again was lost."""
    if before.worker == after.worker:
        return "it was out of reach and has not died"
    alive = {node["NodeID"] for node in await asyncio.to_thread(ray.nodes) if node["Alive"]}
    return "its process died" if before.node in alive else "its node died"


MAX_DEATHS = 5
"""Deaths during set-up, or without progress in between, after which the actor itself counts as the cause: its weights
or its debates may not fit into memory."""


class CrashLoopGuard:
    """Crash-loop detection: counts the deaths of one actor since it last made progress.

    Args:
        name: of the actor.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._incarnation: Incarnation | None = None
        self._in_vain = 0

    def progressed(self) -> None:
        """Reset the count: the actor has made progress, or had no work."""
        self._in_vain = 0

    def record_death(self, incarnation: Incarnation | None, why: str = "") -> None:
        """Count the loss of an actor that is back, unless it was only unreachable.

        Args:
            incarnation: its current one; None when it is lost again: it will return once more, and both losses count as
                one.
            why: Ray's reason for the loss.

        Raises:
            ActorGone: it has died too often without progress.
        """
        if incarnation is None:
            return
        self._in_vain += self._incarnation is None or self._incarnation.worker != incarnation.worker
        self._incarnation = incarnation
        if self._in_vain >= MAX_DEATHS:
            raise ActorGone(
                f"the actor {self._name} died {MAX_DEATHS} times without progress in between"
                f"{f' ({why})' if why else ''}: lower --max-open or give its node more memory, and "
                "run the same command again to resume from the record"
            )


_log = structlog.get_logger(__name__)
_POLL_S = 0.1
_ERROR_LINE = re.compile(r"[\w.]*(Error|Exception): ")
_DEAD_FOR_S = 15.0
"""Seconds for which Ray has to report an actor dead before it counts as dead: during a restart, Ray reports it
unavailable, and dead only briefly."""

RESTART_TIMEOUT_S = 600.0
"""Seconds for a lost actor to have a process again: by default Ray notices a node's death after 15 to 20 s, and an
autoscaler takes minutes to add a node."""

SET_UP_S = 600.0
"""Seconds for an actor to set itself up, weights included, before its callers give up."""


class PeerLost(Exception):
    """A call was lost: the actor died, is restarting or cannot be reached.

    Args:
        why: Ray's reason.
        dead: whether Ray reports the actor dead, not only unavailable.
        unfit: whether its constructor failed: another incarnation would fail too.
    """

    def __init__(self, why: str, dead: bool, unfit: bool = False) -> None:
        super().__init__(why, dead, unfit)
        self.why, self.dead, self.unfit = why, dead, unfit


class Peer:
    """Handle of a named actor of this run.

    Args:
        name: the actor's name.
        namespace: the run's Ray namespace.
        handle: Ray's handle, if the caller created the actor; None looks it up by its name.
    """

    def __init__(self, name: str, namespace: str, handle: Any = None) -> None:
        self.name, self._namespace = name, namespace
        self._handle = handle

    async def handle(self) -> Any:
        """Ray's handle of the actor."""
        if self._handle is None:
            self._handle = await asyncio.to_thread(ray.get_actor, self.name, namespace=self._namespace)
        return self._handle

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method once; raises the method's own errors of moot.

        Raises:
            PeerLost: the call or its result was lost.
        """
        if not ray.is_initialized():  # Ray would start a new cluster to look for the actor
            raise PeerLost("Ray was shut down", True)
        try:
            handle = await self.handle()
        except ValueError as error:  # Ray has no actor of that name: it has died for good
            raise PeerLost(f"there is no actor {self.name} any more", True) from error
        try:
            return await getattr(handle, method).remote(*args)
        except RayTaskError as error:
            raise unwrapped(error) from None
        except RayError as error:
            unfit = isinstance(error, RayActorError) and error.actor_init_failed
            raise PeerLost(_reason(error), isinstance(error, ActorDiedError), unfit) from error

    async def first_call(self, method: str = "ping") -> None:
        """Wait until the actor is set up, or with `where` only until it is placed; also while it is lost meanwhile.

        Raises:
            ActorGone: it cannot be started.
        """
        deaths = 0
        while True:
            try:
                await self.call(method)
                return
            except PeerLost as lost:
                deaths += 1
                if lost.unfit or deaths == MAX_DEATHS or not await self._has_a_process():
                    why = f"the actor {self.name} could not be started: {lost.why}"
                    raise ActorGone(why) from lost

    async def call_until_done(self, method: str, *args: Any) -> Any:
        """Call an idempotent method; retried when the actor was lost meanwhile and is back.

        Raises:
            ActorGone: the actor is not back in time, or dies of the call.
        """
        crash_guard = CrashLoopGuard(self.name)
        while True:
            try:
                return await self.call(method, *args)
            except PeerLost as lost:
                await self.wait_until_back()
                crash_guard.record_death(await self.incarnation(), lost.why)

    async def wait_until_back(self) -> None:
        """Wait until the actor answers.

        Raises:
            ActorGone: it is not back in time.
        """
        for _ in range(MAX_DEATHS):
            if not await self._has_a_process():
                break
            with suppress(PeerLost, TimeoutError):
                async with asyncio.timeout(SET_UP_S):
                    await self.call("ping")
                return
        raise ActorGone(
            f"the actor {self.name} died and did not come back: run the same command again to resume from the record"
        )

    async def _has_a_process(self) -> bool:
        """Wait until the actor can be reached, set up or not; False on timeout."""
        clock = asyncio.get_running_loop().time
        called_dead = 0.0  # time since which Ray has continuously reported it dead
        with suppress(TimeoutError):
            async with asyncio.timeout(RESTART_TIMEOUT_S):
                while not called_dead or clock() - called_dead < _DEAD_FOR_S:
                    try:
                        await self.call("where")
                        return True
                    except PeerLost as lost:
                        called_dead = (called_dead or clock()) if lost.dead else 0.0
                    await asyncio.sleep(_POLL_S)
        return False

    async def watch(self, lost: Callable[[], Any]) -> None:
        """Call and await `lost` each time the actor has died and is back; never returns.

        The log says why it was lost: its process or its node died, or it was only unreachable.
        """
        watching = asyncio.ensure_future(self.call("watch"))
        try:
            incarnation = await self.incarnation()
            while True:
                try:
                    await watching
                    return
                except PeerLost as loss:
                    _log.warning("an actor cannot be reached", actor=self.name, why=loss.why)
                await self.wait_until_back()
                watching = asyncio.ensure_future(self.call("watch"))  # first: it may die again while `lost` works
                before, incarnation = incarnation, await self.incarnation()
                await lost()
                if before is not None and incarnation is not None:
                    with suppress(RayError, RuntimeError):  # only for the log
                        how = await loss_reason(before, incarnation)
                        _log.warning(
                            "an actor is back", actor=self.name, was=how, node=incarnation.node, pid=incarnation.pid
                        )
        finally:
            watching.cancel()

    async def kill(self) -> None:
        """Kill the actor's process; Ray restarts it."""
        if not ray.is_initialized():
            return
        try:
            await asyncio.to_thread(ray.kill, await self.handle(), no_restart=False)
        except (ValueError, RayError) as error:
            _log.warning("an actor could not be ended", actor=self.name, why=_reason(error))

    async def incarnation(self) -> Incarnation | None:
        """The actor's current incarnation; None when it is lost again."""
        try:
            raw = await self.call("where")
        except PeerLost:
            return None
        return None if raw is None else msgspec.msgpack.decode(raw, type=Incarnation)


def _reason(error: Exception) -> str:
    """Root cause of an actor's death: the last error in the traceback that Ray gives as text."""
    lines = str(error).splitlines() or [type(error).__name__]
    return next((line for line in reversed(lines) if _ERROR_LINE.match(line)), lines[0])


def unwrapped(error: RayTaskError) -> BaseException:
    """Error of the remote method, if it is one of moot's; else Ray's error."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, MootError) else error
