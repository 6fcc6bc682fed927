"""How many calls CEDA makes for a claim."""

from __future__ import annotations

from moot.protocols.calls import CallPlan, Calls
from moot.protocols.case import Case
from moot.protocols.ceda.debate import DEBATER
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.pictures import distinct_pictures
from moot.protocols.ceda.retrieval import own_chunks
from moot.protocols.ceda.settings import CedaSettings


def calls_for(settings: CedaSettings, case: Case, judges: int) -> CallPlan:
    """The fewest and the most calls for one claim.

    The fewest: the first two debaters agree, and every picture has been described for another claim of the run. Replies
    read are the extraction prompt, the descriptions, and the messages.
    """
    pictures = len(distinct_pictures(case))
    prompts = 1 if pictures and settings.vision.prompt == "dynamic" else 0
    described = Calls(pictures, prompts * pictures)
    ends = [_debate(turns, judges, pictures) for turns in (min(2, settings.max_turns), settings.max_turns)]
    return CallPlan(Calls(prompts) + ends[0], Calls(prompts) + described + ends[1], DEBATER, _slots(settings, case))


def _debate(turns: int, judges: int, pictures: int) -> Calls:
    """So many messages, each read by those after it, and the judges, who read them all."""
    messages = Calls(turns, turns * (turns - 1) // 2 + turns * pictures)
    return messages + Calls(judges, judges * (turns + pictures))


def _slots(settings: CedaSettings, case: Case) -> dict[str, object]:
    """The first debater's prompt with as much of the case's own texts as can be shown: the run's library is unknown."""
    chunks = own_chunks(case)[: settings.evidence.passages]
    items = [
        Item(id=f"E{number}", kind=chunk.kind, document=chunk.document, chunk=chunk.chunk, text=chunk.text)
        for number, chunk in enumerate(chunks, start=1)
    ]
    return {
        "role": settings.role,
        "instruction": settings.instruction,
        "conflicts": [],
        "parted": settings.shown != "shared",
        "missing_pictures": [],
        "claim": case.question,
        "evidence": [{"number": item.id, "source": item.source, "text": item.text} for item in items],
        "messages": [],
        "about": "claim",
    }
