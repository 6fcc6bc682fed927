"""Agent C: the evidence as structured facts: which are at odds, and who is shown what. No model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moot.protocols.ceda.conflicts import Conflict, conflicts_of, pairs_of
from moot.protocols.ceda.dealing import Shown, dealt
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.state import Content, as_recorded


@dataclass(frozen=True, slots=True)
class Context:
    """What the debate goes by.

    Attributes:
        conflicts: the pairs of items that are at odds.
        considered: how many pairs were tested.
        shown_to: by debater the ids of the items that it is shown.
    """

    conflicts: tuple[Conflict, ...]
    considered: int
    shown_to: dict[str, tuple[str, ...]]


def context_of(items: Sequence[Item], shown: Shown) -> Context:
    """The context of a claim's evidence; see `conflicts` and `dealing`."""
    conflicts = conflicts_of(items)
    return Context(conflicts, len(pairs_of(items)), dealt(items, conflicts, shown))


def evidence_record(content: Content, considered: int) -> dict[str, Any]:
    """The data of the event `evidence`.

    Args:
        content: of the state with the context in it.
        considered: how many pairs of items were tested.
    """
    record = {
        "items": content.evidence,
        "conflicts": content.conflicts,
        "considered": considered,
        "shown_to": content.shown_to,
        "missing_pictures": [missing.picture for missing in content.missing_pictures],
    }
    return as_recorded(record)
