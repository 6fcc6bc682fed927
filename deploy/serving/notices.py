"""What a server's operator is told on the terminal while it serves: that it takes no requests, why, and that it does
again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

SILENT = {"requests": "the server does not answer; Ray Serve starts it anew"}
"""What is said of a server that does not answer."""


class Notices:
    """Lines for what has changed."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._incarnation = ""

    def of(self, closed: Mapping[str, str], incarnation: str = "") -> Iterator[str]:
        """A line for each kind of request that is newly refused, for another reason, or taken again.

        A replica that Serve has started anew took no requests in between, however short that was.

        Args:
            closed: by kind why it is refused now; kinds that are taken are missing.
            incarnation: of the replica that says so; empty when it does not answer.
        """
        if incarnation and self._incarnation not in ("", incarnation) and self._known != SILENT:
            yield from self.of(SILENT)
        self._incarnation = incarnation or self._incarnation
        for kind, why in closed.items():
            if self._known.get(kind) != why:
                yield f"{kind} are not taken: {why}"
        for kind in self._known.keys() - closed.keys():
            yield f"{kind} are taken again"
        self._known = dict(closed)
