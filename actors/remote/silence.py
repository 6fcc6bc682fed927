"""Telling of actors that hang: they have not died, so that nothing notices them, and whoever has called them waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import msgspec
import structlog

from moot.actors.remote.lives import Life
from moot.actors.remote.peers import Peer, PeerLost

_log = structlog.get_logger(__name__)
_ASK_EACH_S = 30.0
SILENT_S = 60.0
"""Seconds without an answer after which an actor is told of: whatever blocks its event loop so long is no pause."""


async def tell_of_silence(peers: Iterable[Peer]) -> None:
    """Warn of each actor that does not answer; returns never. Nothing is done to it: it may only be slow."""
    await asyncio.gather(*(_listen(peer) for peer in peers))


async def _listen(peer: Peer) -> None:
    life: Life | None = None
    while True:
        asking = asyncio.ensure_future(peer.call("where"))
        try:
            answered, _ = await asyncio.wait([asking], timeout=SILENT_S)
            if not answered:
                _log.warning(
                    "an actor does not answer and has not died: something blocks its event loop, such as a protocol "
                    "that computes beside floor.compute; when it stays so, end its process, and its work goes on from "
                    "the journal",
                    actor=peer.name,
                    silent_s=SILENT_S,
                    node=life.node if life is not None else None,
                    pid=life.pid if life is not None else None,
                )
            with suppress(PeerLost):  # others see to that
                life = msgspec.msgpack.decode(await asking, type=Life)
            if not answered:
                _log.warning("an actor answers again, or is being started again", actor=peer.name)
        finally:
            asking.cancel()
        await asyncio.sleep(_ASK_EACH_S)
