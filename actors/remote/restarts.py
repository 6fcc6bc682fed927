"""What Ray does when an actor of a run dies: one row per kind, with the reason.

Every actor comes back, however often it dies, and none of a run's calls is made again by Ray: that would pay for
replies twice. Who called sees the loss, waits until the actor is back (`peers.Peer.back`) and makes again only what is
journalled or has no effect when it comes twice (`peers.Peer.call_until_done`). A node's death is the same to us, only
later: Ray restarts the actor elsewhere once it has missed the node's health checks. Only the actor around a run,
`STAGE`, is called again by Ray: it goes by the run's record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from moot.actors.placement import Kind

FOREVER = -1
"""As Ray writes "without end". Who calls an actor ends the run when it dies again and again in vain: see `deaths`."""


@dataclass(frozen=True)
class Restarts:
    """What Ray is told about the death of an actor.

    Attributes:
        max_restarts: how often it is started again.
        max_task_retries: how often Ray makes a call again that was lost.
        why: what is lost with it, and who makes up for it.
    """

    max_restarts: int
    max_task_retries: int
    why: str


RESTARTS: Mapping[Kind, Restarts] = MappingProxyType(
    {
        "moderator": Restarts(
            FOREVER,
            0,
            "its debates are open coroutines; the arena hands their cases over again, and each is replayed from the "
            "journal. An exchange that Ray made again would take news from the new life that nobody has waited for",
        ),
        "agent": Restarts(
            FOREVER,
            0,
            "its calls under way may be paid; moderators read the journal and ask again only what it lacks. A retry by "
            "Ray knows no journal",
        ),
        "writer": Restarts(
            FOREVER,
            0,
            "its buffer is at most a flush window; it loads the journal, the driver registers the open cases again, "
            "and rows are sent again by who sent them: the first row of each step wins",
        ),
        "limiter": Restarts(
            FOREVER,
            0,
            "what was spent is in its ledger; every gate reports what it holds with its next exchange",
        ),
    }
)
"""By kind of actor."""

STAGE = Restarts(
    FOREVER,
    FOREVER,
    "it holds a run's driver and no reply; a batch that is made again is told from the record what has ended, its open "
    "debates are replayed from the journal, and closing twice is harmless",
)
"""Of `deploy.dataset.stage_actor.StageActor`, which is no process of a run and has no place in its configuration."""
