"""First asks of each role: a run stops by itself if none of them gets a usable reply, before it pays for more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from moot.protocols.errors import REPLAY_DIVERGED, UNSENT
from moot.protocols.messages import AskResult

MOST_UNUSABLE = 20
"""Default number of first asks of a role that may all be in vain."""

_NO_REPLIES = ("", UNSENT, REPLAY_DIVERGED)
"""Failures that say nothing about a model's replies."""


_LONGEST_WHY = 120


class NothingUsable(Exception):
    """None of the first asks of a role got a usable reply; `str()` is the role family, a colon, and the reason."""

    kind = "unusable"


@dataclass(slots=True, eq=False)
class _Role:
    """Asks of a role family without a usable reply so far."""

    failed: int = 0
    in_flight: int = 0
    why: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


@dataclass(slots=True, eq=False)
class PaidAsk:
    """An admitted ask; its caller sets the result."""

    result: AskResult | None = None


class FirstAsks:
    """Admits the asks of a process: at most `most` of a role until one of them got a usable reply.

    Args:
        most: number of first asks of a role family that may be in vain; 0 for no bound.
        proven: role families that have had a usable reply in an earlier session of the run.
    """

    def __init__(self, most: int = 0, proven: Collection[str] = ()) -> None:
        self._most, self._proven = most, set(proven)
        self._roles: dict[str, _Role] = {}

    @asynccontextmanager
    async def admitted(self, family: str) -> AsyncIterator[PaidAsk]:
        """Hold an ask until it may be paid for; the body sets its result. An ask beyond the first ones waits for them.

        Raises:
            NothingUsable: all of the first asks of the role were in vain.
        """
        ask = PaidAsk()
        if not self._most or family in self._proven:
            yield ask
            return
        role = self._roles.setdefault(family, _Role())
        while family not in self._proven and role.failed + role.in_flight >= self._most:
            if role.failed >= self._most:
                raise NothingUsable(
                    f"{family}: none of the first {self._most} asks of the role {family!r} got a usable reply: "
                    f"{role.why}"
                )
            await role.changed.wait()
        role.in_flight += 1
        try:
            yield ask
        finally:
            role.in_flight -= 1
            self._learn(family, role, ask.result)

    def _learn(self, family: str, role: _Role, result: AskResult | None) -> None:
        if result is not None and result.data is not None:
            self._proven.add(family)
        elif result is not None and result.outcome == "failed" and result.failure not in _NO_REPLIES:
            role.failed += 1
            error = result.error.partition(" (")[0]  # without a remedy in brackets: the run's end has one
            role.why = f"{result.model}: {result.failure}: {error[:_LONGEST_WHY]}"
        role.wake()
