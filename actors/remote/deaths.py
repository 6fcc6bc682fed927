"""Counting the deaths of an actor that gain nothing: what killed it kills its next life, too, and is paid again."""

from __future__ import annotations

from moot.actors.remote.lives import Life
from moot.protocols.errors import ActorGone

MOST_DEATHS = 5
"""An actor that dies so often while it sets itself up, or while its work does not come on, is the cause of it: its
weights or its debates do not fit into memory, for one."""


class Deaths:
    """The deaths of one actor since its work has last come on.

    Args:
        name: of the actor.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._life: Life | None = None
        self._in_vain = 0

    def gained(self) -> None:
        """Its work has come on, or it had none."""
        self._in_vain = 0

    def count(self, life: Life | None, why: str = "") -> None:
        """The actor was lost and is back: count it, unless it was only out of reach.

        Args:
            life: as what it lives now; None when it is gone again: it comes back once more, and both count as one.
            why: what Ray said of the loss.

        Raises:
            ActorGone: it has died too often in vain.
        """
        if life is None:
            return
        self._in_vain += self._life is None or self._life.worker != life.worker
        self._life = life
        if self._in_vain >= MOST_DEATHS:
            raise ActorGone(
                f"the actor {self._name} died {MOST_DEATHS} times and its work did not come on in between"
                f"{f' ({why})' if why else ''}: let it hold less at once (--max-open) or give its node more memory; "
                "the same command goes on from the record"
            )
