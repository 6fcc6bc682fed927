"""Leases of shared replies: the lessee pays for a reply that several cases share, while the others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class ReplyLeases:
    """Leases of one writer's shared replies.

    Args:
        recorded: whether the shared reply of a pseudo case id is recorded.
    """

    def __init__(self, recorded: Callable[[str], bool]) -> None:
        self._recorded = recorded
        self._leases: dict[str, tuple[str, asyncio.Future[None]]] = {}

    async def acquire(self, key: str, lease_s: float, lessee: str = "") -> bool:
        """Acquire the lease of the shared reply `key`: whether the caller pays for it; False once it is recorded.

        Waits while another caller has the lease, at most `lease_s` seconds, and then takes it over.

        Args:
            lessee: id of the request, so that it can be repeated when its answer was lost; empty for no repetition.
        """
        while not self._recorded(key):
            lease = self._leases.get(key)
            if lease is None:
                self._leases[key] = (lessee, asyncio.get_running_loop().create_future())
                return True
            if lessee and lease[0] == lessee:
                return True
            try:
                await asyncio.wait_for(asyncio.shield(lease[1]), lease_s)
            except TimeoutError:
                if self._leases.get(key) is lease:
                    del self._leases[key]
        return False

    def release(self, key: str, lessee: str = "") -> None:
        """Release a lease, with or without a reply; has no effect on a lease that has expired.

        Args:
            lessee: see `acquire`.
        """
        lease = self._leases.get(key)
        if lease is not None and lease[0] == lessee:
            del self._leases[key]
            lease[1].set_result(None)
