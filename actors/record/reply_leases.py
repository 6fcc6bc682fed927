"""Who pays for a reply that several cases share: one of them, while the others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class ReplyLeases:
    """The claims of one writer.

    Args:
        recorded: whether the shared reply of that pseudo case id is recorded.
    """

    def __init__(self, recorded: Callable[[str], bool]) -> None:
        self._recorded = recorded
        self._held: dict[str, tuple[str, asyncio.Future[None]]] = {}

    async def acquire(self, key: str, lease_s: float, claimant: str = "") -> bool:
        """Whether the caller shall pay for the shared reply `key`; False once it is recorded.

        While another holds the claim this waits, at most `lease_s`: then the claim is the caller's.

        Args:
            claimant: names the question, so that it can be asked again when the answer was lost; empty when it cannot.
        """
        while not self._recorded(key):
            held = self._held.get(key)
            if held is None:
                self._held[key] = (claimant, asyncio.get_running_loop().create_future())
                return True
            if claimant and held[0] == claimant:
                return True
            try:
                await asyncio.wait_for(asyncio.shield(held[1]), lease_s)
            except TimeoutError:
                if self._held.get(key) is held:
                    del self._held[key]
        return False

    def release(self, key: str, claimant: str = "") -> None:
        """The holder of a claim is done, with or without a reply; one whose lease was over has none any more.

        Args:
            claimant: as the claim was asked for.
        """
        held = self._held.get(key)
        if held is not None and held[0] == claimant:
            del self._held[key]
            held[1].set_result(None)
