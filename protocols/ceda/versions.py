"""The state as a debate goes on: one version after the other, each put into the record."""

from __future__ import annotations

from moot.protocols.ceda.state import Content, Stage, State, next_state, state_event
from moot.protocols.floor import Floor


class Versions:
    """Keeps the last version of the state; notes an event `state` for each.

    Args:
        floor: of the debate.
        first: what the first version, which is the user's, holds.
    """

    def __init__(self, floor: Floor, first: Content) -> None:
        self._floor = floor
        self._last = self._noted(next_state(None, "initial", "user", first), first)

    @property
    def content(self) -> Content:
        """All that is known by now."""
        return self._last.content

    def add(self, stage: Stage, by: str, added: Content) -> None:
        """Go on to the next version."""
        self._last = self._noted(next_state(self._last, stage, by, added), added)

    def _noted(self, state: State, added: Content) -> State:
        self._floor.note(state_event(state, added))
        return state
