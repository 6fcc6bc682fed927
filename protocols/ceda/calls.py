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
    read are the extraction prompt, the descriptions, what agent C makes of the evidence, and the messages.
    """
    pictures = len(distinct_pictures(case))
    prompts = 1 if pictures and settings.vision.prompt == "dynamic" else 0
    described = Calls(pictures, prompts * pictures)
    by_model = settings.context.by == "model"
    fewest = _debate(min(2, settings.max_turns), judges, pictures, by_model and bool(pictures or own_chunks(case)))
    most = _debate(settings.max_turns, judges, pictures, by_model)
    return CallPlan(Calls(prompts) + fewest, Calls(prompts) + described + most, DEBATER, _slots(settings, case))


def _debate(turns: int, judges: int, pictures: int, by_model: bool) -> Calls:
    """The context, if a model makes it; so many messages, each read by those after it; the judges, who read all."""
    context = Calls(1, pictures) if by_model else Calls(0)
    before = pictures + context.count
    messages = Calls(turns, turns * (turns - 1) // 2 + turns * before)
    return context + messages + Calls(judges, judges * (turns + before))


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
        "statements": [],
        "messages": [],
        "about": "claim",
    }
