"""Agent C: the evidence in order: which items are at odds, and who is shown what. By rules, or by a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from moot.protocols.ceda.conflicts import Conflict, conflicts_of, pairs_of
from moot.protocols.ceda.context_reply import ContextReply, OneItemReply
from moot.protocols.ceda.dealing import Shown, dealt
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.slots import context_slots
from moot.protocols.ceda.state import Content, as_recorded
from moot.protocols.ceda.synthesis import Synthesis, grounded
from moot.protocols.errors import AskFailed
from moot.protocols.floor import Floor

CONTEXT = "ceda/context"


@dataclass(frozen=True, slots=True)
class Context:
    """What the debate goes by.

    Attributes:
        conflicts: the pairs of items that are at odds.
        considered: how many pairs were looked at.
        shown_to: by debater the ids of the items that it is shown.
        synthesis: what a model made of the evidence; None where none was asked.
    """

    conflicts: tuple[Conflict, ...]
    considered: int
    shown_to: dict[str, tuple[str, ...]]
    synthesis: Synthesis | None = None


def context_of(items: Sequence[Item], shown: Shown) -> Context:
    """The context of a claim's evidence by rules; see `conflicts` and `dealing`."""
    conflicts = conflicts_of(items)
    return Context(conflicts, len(pairs_of(items)), dealt(items, conflicts, shown))


async def synthesised(floor: Floor, content: Content, shown: Shown) -> Context:
    """The context of a claim's evidence by a model, at the path `context`; without evidence nobody is asked.

    A model that gives no reply leaves the evidence as it is, with no conflict known.
    """
    items = content.evidence
    if not items:
        return Context((), 0, dealt(items, (), shown), Synthesis())
    kind = ContextReply if len(items) > 1 else OneItemReply
    try:
        turn = await floor.ask("context/0", CONTEXT, context_slots(content), reply=kind, path="context")
    except AskFailed as failed:
        missing = Synthesis(missing=f"{failed.kind}: {failed.message}")
        return Context((), 0, dealt(items, (), shown), missing)
    synthesis, conflicts = grounded(turn.reply, items)
    return Context(conflicts, len(list(combinations(items, 2))), dealt(items, conflicts, shown), synthesis)


def evidence_record(content: Content, considered: int) -> dict[str, Any]:
    """The data of the event `evidence`.

    Args:
        content: of the state with the context in it.
        considered: how many pairs of items were looked at.
    """
    record = {
        "items": content.evidence,
        "conflicts": content.conflicts,
        "considered": considered,
        "shown_to": content.shown_to,
        "missing_pictures": [missing.picture for missing in content.missing_pictures],
        "synthesis": content.synthesis,
    }
    return as_recorded(record)
