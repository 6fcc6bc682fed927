"""Shared replies: asked once in a run for many cases, by the holder of a lease, while the others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import blake2b

import msgspec

from moot.actors.debate.context import DebateContext
from moot.actors.record.recovery import History
from moot.actors.record.rows import SHARED
from moot.protocols.messages import Ask, AskResult

_DURABLE_TRIES, _DURABLE_EACH_S = 100, 0.05


class SharedReplies:
    """Shared replies of one debate.

    Args:
        context: of the process, with the futures of shared replies.
        pay: makes an ask, which is paid for.
    """

    def __init__(self, context: DebateContext, pay: Callable[[Ask], Awaitable[AskResult]]) -> None:
        self._context, self._pay = context, pay

    async def reply(self, key: str, ask: Ask) -> AskResult:
        """Reply to a shared ask; the debates of this process wait for it together.

        Args:
            key: identifies the shared reply, beside the ask's fingerprint.
            ask: of one case; nothing specific to that case goes into the shared one.
        """
        body = msgspec.structs.replace(ask, labels=None, choices=(), aliases=())
        content = await self._context.shared_fingerprint(body)
        digest = blake2b(f"{key}/{content}".encode(), digest_size=16).hexdigest()
        case_id = f"{SHARED}-{digest}"
        ask = msgspec.structs.replace(body, case_id=case_id, attempt=0, path=SHARED)
        timeout_s = self._context.roles.binding(ask.role).timeout_s
        ask = msgspec.structs.replace(await self._context.fingerprinted(ask), seconds_left=timeout_s)
        return await self._shared(case_id, ask)

    async def _shared(self, case_id: str, ask: Ask) -> AskResult:
        """Reply recorded under a pseudo case; the first caller asks for it."""
        while (waiting := self._context.shared.get(case_id)) is not None:
            known = await asyncio.shield(waiting)
            if known is not None:
                return known
        mine: asyncio.Future[AskResult | None] = asyncio.get_running_loop().create_future()
        self._context.shared[case_id] = mine
        answered = None
        try:
            answered = await self._asked_once(case_id, ask)
            return answered
        finally:
            if answered is None:
                del self._context.shared[case_id]
            mine.set_result(answered)

    async def _asked_once(self, case_id: str, ask: Ask) -> AskResult:
        record_client = self._context.record
        mine, history = await record_client.acquire_lease(case_id)
        try:
            recorded = _recorded(history)
            if recorded is not None:
                return recorded
            answered = await self._pay(history.resume(ask))
            await self._wait_until_durable(case_id)
            return answered
        finally:
            if mine:
                await record_client.release_lease(case_id)

    async def _wait_until_durable(self, case_id: str) -> None:
        """Wait until the shared reply is in the journal, where the next holder of the lease reads it."""
        for _ in range(_DURABLE_TRIES):
            if await self._context.record.has_shared(case_id):
                return
            await asyncio.sleep(_DURABLE_EACH_S)


def _recorded(history: History) -> AskResult | None:
    """Reply of a shared ask, if recorded."""
    return next((reply.answered for reply in history.replies if reply.path == SHARED), None)
