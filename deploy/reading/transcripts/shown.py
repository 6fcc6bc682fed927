"""An event as it is shown, for a terminal and for Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shown:
    """An event in words; nothing in it is escaped yet.

    Attributes:
        title: what it is.
        header, rows: a table; none without rows.
        lines: what else there is to say.
    """

    title: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()
