"""A request that was accepted, from then until its end."""

from __future__ import annotations

import asyncio

from moot.deploy.running.held import Held
from moot.protocols.errors import RunMismatch


class Job:
    """A request that was accepted. Lives in one event loop.

    Attributes:
        id: of its case.
        content: the hash of its case; empty for one that is known from the record alone.
        trail: tells its events from those of another time that it was asked.
        size: bytes of its body.
        held: its end, once it has one.
        cancelled: whether a client has cancelled it.
        why: what put it aside, or keeps it there.
        mismatch: what the record holds under its id is something else.
        unkept: whether the inbox could not keep it, so that it was refused.
        engine_s: seconds that the engine had it, until its verdict was durable; None before, and from the record.
        done: set when there is nothing more to wait for.
        holding: has it debated.
        taking: has the inbox keep it; None for one that is there already. Fails when the request is refused.
        withdrawing: cancels it, once for all who ask; gives whether it did.
    """

    def __init__(self, case_id: str, content: str = "", trail: str = "record", size: int = 0) -> None:
        self.id, self.content, self.trail, self.size = case_id, content, trail, size
        self.held: Held | None = None
        self.cancelled = self.unkept = False
        self.why = ""
        self.mismatch: RunMismatch | None = None
        self.engine_s: float | None = None
        self.done = asyncio.Event()
        self.holding: asyncio.Task[None] | None = None
        self.taking: asyncio.Task[None] | None = None
        self.withdrawing: asyncio.Task[bool] | None = None

    @classmethod
    def aside(cls, case_id: str, why: str) -> Job:
        """One that was accepted once and is not gone on with: asked again, with any content, it begins anew."""
        job = cls(case_id)
        job.why = why
        job.done.set()
        return job

    @property
    def goes_on(self) -> bool:
        """Whether asking again finds this one: it is being debated, or has a verdict."""
        return not self.done.is_set() or (self.held is not None and not self.held.failure)
