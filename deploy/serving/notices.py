"""What a server's operator is told on the terminal while it serves: that it takes no requests, why, and that it does
again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Notices:
    """Lines for what has changed."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, closed: Mapping[str, str]) -> Iterator[str]:
        """A line for each kind of request that is newly refused, for another reason, or taken again.

        Args:
            closed: by kind why it is refused now; kinds that are taken are missing.
        """
        for kind, why in closed.items():
            if self._known.get(kind) != why:
                yield f"{kind} are not taken: {why}"
        for kind in self._known.keys() - closed.keys():
            yield f"{kind} are taken again"
        self._known = dict(closed)
