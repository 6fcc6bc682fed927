"""Where everybody of a run is to be found."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moot.actors.household import (
    Service,
)
from moot.actors.remote.peers import Peer


class Roster(msgspec.Struct, frozen=True):
    """Where everybody of a run is to be found: actor names by what they do; no limiter when nothing is limited."""

    namespace: str
    writers: list[str]
    moderators: list[str]
    agents: list[tuple[Service, list[str]]]
    limiter: str = ""

    def peers(self, names: Sequence[str]) -> list[Peer]:
        """Peers by name."""
        return [Peer(name, self.namespace) for name in names]
