"""Slots of prompts, from the state of the debate."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from moot.protocols.ceda.evidence_split import DEBATERS
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.stance import ClaimMessage, about_what
from moot.protocols.ceda.state import StateContent

_WHY = {
    "number": "their numbers differ",
    "negation": "one negates",
    "antonym": "they say opposite words",
    "meaning": "both cannot be true",
}


def conflicts_in_words(content: StateContent) -> tuple[str, ...]:
    """Conflicts for the system prompt: numbers of the items, without any of their words."""
    return tuple(f"{' and '.join(each.between)} ({_WHY[each.why]})" for each in content.conflicts)


def speaker_in_words(debater: str) -> str:
    """Name of a debater in prompts.

    >>> speaker_in_words("debater/0")
    'debater 1'
    """
    return f"debater {DEBATERS.index(debater) + 1}"


def is_parted(content: StateContent) -> bool:
    """Whether the debaters receive different evidence."""
    return len(set(content.shown_to.values())) > 1


def shows_nothing_on_claim(content: StateContent, debater: str) -> bool:
    """Whether agent C found nothing on the claim in the items that a debater is shown: no statement and no conflict.

    False where that is unknown: without a model as agent C, or with quotes that are not in the items.
    """
    stated = content.synthesis
    if stated is None or stated.missing or stated.unfounded or not content.evidence:
        return False
    found = {source for each in stated.statements for source in each.sources}
    found |= {item for each in content.conflicts for item in each.between}
    return found.isdisjoint(content.shown_to[debater])


def context_slots(content: StateContent) -> dict[str, Any]:
    """Slots of agent C, if it is a model."""
    return {"claim": content.claim, "evidence": [_evidence_slot(item) for item in content.evidence]}


def debater_slots(content: StateContent, debater: str) -> dict[str, Any]:
    """Slots of a debater's turn; `content` is that of the current state."""
    assert content.system_prompt is not None, "the first version of the state has it"
    shown = set(content.shown_to[debater])
    return {
        "role": content.system_prompt.role,
        "instruction": content.system_prompt.instruction,
        "conflicts": list(content.system_prompt.conflicts),
        "parted": is_parted(content),
        "missing_pictures": [missing.picture + 1 for missing in content.missing_pictures],
        "claim": content.claim,
        "evidence": [_evidence_slot(item) for item in content.evidence if item.id in shown],
        "statements": _statement_slots(content, shown),
        "messages": [_message_slot(message) for message in content.debate],
        "about": about_what(content.debate),
        **({"nothing_on_claim": True} if shows_nothing_on_claim(content, debater) else {}),
    }


def judge_slots(content: StateContent) -> dict[str, Any]:
    """Slots of a judge: all evidence, its conflicts, the debate, and its disagreements."""
    return {
        "missing_pictures": [missing.picture + 1 for missing in content.missing_pictures],
        "claim": content.claim,
        "evidence": [_evidence_slot(item) for item in content.evidence],
        "parted": is_parted(content),
        "statements": _statement_slots(content, {item.id for item in content.evidence}),
        "conflicts": [
            {"between": ", ".join(each.between), "text": f"{_WHY[each.why]}: {each.detail}"}
            for each in content.conflicts
        ],
        "messages": [_message_slot(message) for message in content.debate],
        "disagreements": disagreements(content),
    }


def disagreements(content: StateContent) -> list[str]:
    """The points of disagreement: each message whose stance on the claim is not the one before it.

    Numbers of turns and of items only: no text of a document or a message.
    """
    found = []
    for before, after in zip(content.debate, content.debate[1:], strict=False):
        if None not in (before.stance, after.stance) and before.stance != after.stance:
            found.append(f"{_in_words(content, after)} against {_in_words(content, before)}")
    return found


def _in_words(content: StateContent, message: ClaimMessage) -> str:
    named = [item.id for item in content.evidence if _names(message.text, item.id)]
    grounds = f", naming {', '.join(named)}" if named else ""
    return f"turn {message.turn} ({speaker_in_words(message.debater)} {message.stance} the claim{grounds})"


def _names(text: str, item: str) -> bool:
    """Whether a text names an item; `E1` is not in `E12`."""
    return re.search(rf"(?<!\w){re.escape(item)}(?!\w)", text) is not None


def _evidence_slot(item: Item) -> Mapping[str, str]:
    return {"number": item.id, "source": item.source, "text": item.text}


def _statement_slots(content: StateContent, shown: Collection[str]) -> list[Mapping[str, str]]:
    """Statements with all sources shown: others would reveal the content of hidden sources."""
    stated = content.synthesis.statements if content.synthesis else ()
    return [
        {"sources": ", ".join(each.sources), "text": "\n".join([each.text, *(f'{i}: "{q}"' for i, q in each.facts)])}
        for each in stated
        if set(each.sources) <= set(shown)
    ]


def _message_slot(message: ClaimMessage) -> Mapping[str, Any]:
    return {
        "turn": message.turn,
        "speaker": speaker_in_words(message.debater),
        "text": message.text,
        "says": message.says or "unclear",
        "stance": message.stance or "unknown",
    }
