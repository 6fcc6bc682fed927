"""How an actor was lost: with its process, with its node, or not at all, when it was only out of reach."""

from __future__ import annotations

import asyncio
import os
from typing import Literal

import msgspec
import ray

Loss = Literal["its node died", "its process died", "it was out of reach and has not died"]


class Life(msgspec.Struct, frozen=True):
    """Where and as what an actor lives, until it dies.

    Attributes:
        node: id of its node.
        worker: id of its process, never given twice.
        pid: of its process, on its node.
    """

    node: str
    worker: str
    pid: int

    @classmethod
    def here(cls) -> Life:
        """That of the calling actor."""
        context = ray.get_runtime_context()
        return cls(context.get_node_id(), context.get_worker_id(), os.getpid())


async def loss_of(before: Life, after: Life) -> Loss:
    """What had become of an actor that answers again."""
    if before.worker == after.worker:
        return "it was out of reach and has not died"
    alive = {node["NodeID"] for node in await asyncio.to_thread(ray.nodes) if node["Alive"]}
    return "its process died" if before.node in alive else "its node died"
