"""Watchdog: detects actors that hang. They have not died, so nothing else notices them, and their callers wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
import structlog

from moot.actors.remote.peers import Incarnation, Peer, PeerLost

_log = structlog.get_logger(__name__)
_ASK_EACH_S = 10.0
UNRESPONSIVE_S = 60.0
"""Seconds without an answer after which a warning is logged: an event loop blocked that long is no pause."""

HUNG_S = 300.0
"""Seconds without an answer after which the process is killed: it hangs. Less than its callers wait for its return
(`peers.RESTART_TIMEOUT_S`)."""

_TICK_S = 1.0


async def run_watchdog(peers: Iterable[Peer]) -> None:
    """Warns of each actor that does not answer, and kills its process if that lasts; never returns.

    Ray restarts a killed actor, and its work resumes from the journal as after any death.
    """
    await asyncio.gather(*(_listen(peer) for peer in peers))


async def _listen(peer: Peer) -> None:
    incarnation: Incarnation | None = None
    while True:
        asking = asyncio.ensure_future(peer.call("where"))
        try:
            answered = await _within(asking, UNRESPONSIVE_S)
            if not answered:
                _warn(peer, incarnation)
                while not await _within(asking, HUNG_S - UNRESPONSIVE_S):
                    _log.error("the process of an actor is ended: it hangs", actor=peer.name, silent_s=HUNG_S)
                    await peer.kill()
            try:
                incarnation = msgspec.msgpack.decode(await asking, type=Incarnation)
            except PeerLost:  # its callers handle that
                pass
            except Exception as error:  # of Ray
                _log.warning("an actor cannot be asked", actor=peer.name, error=repr(error)[:500])
            if not answered:
                _log.warning("an actor answers again, or is being restarted", actor=peer.name)
        finally:
            asking.cancel()
        await asyncio.sleep(_ASK_EACH_S)


async def _within(asking: asyncio.Future[bytes], seconds: float) -> bool:
    """Whether an answer arrives in time. Time in which this process is suspended, as at Ctrl-Z, does not count: the
    actors may have been suspended with it."""
    left_s = seconds
    while left_s > 0.0 and not asking.done():
        await asyncio.wait([asking], timeout=min(_TICK_S, left_s))
        left_s -= _TICK_S
    return asking.done()


def _warn(peer: Peer, incarnation: Incarnation | None) -> None:
    _log.warning(
        "an actor does not answer and has not died: its process is stopped, or a protocol computes outside of "
        "floor.compute; if this lasts, its process is killed, and its work resumes from the journal",
        actor=peer.name,
        silent_s=UNRESPONSIVE_S,
        ended_after_s=HUNG_S,
        node=incarnation.node if incarnation is not None else None,
        pid=incarnation.pid if incarnation is not None else None,
    )
