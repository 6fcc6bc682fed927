"""Prompts of a debate about a claim, as rendered by CEDA's templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from simulated_calls import TEMPLATES

from moot.actors.simulated.answer_key import AnswerKey
from moot.protocols.case import Case, Image, LabelledCase
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS
from moot.protocols.messages import Message

EVIDENCE = (
    "Emperor penguins dive to 500 metres, deeper than any other bird.",
    "Penguins cannot fly: their wings became flippers.",
    "Many colonies begin on sea ice, far from the coast.",
)
ROLE = {"role": "r", "instruction": "i"}
PLAIN: dict[str, Any] = {"parted": False, "missing_pictures": [], "statements": []}


def claim(number: int) -> str:
    return f"Emperor penguins of colony number {number} dive to 500 metres"


COUNT = 600
LABELLED = [
    LabelledCase(Case(id=str(n), question=claim(n), labels=CLAIM_LABELS, aliases=CLAIM_ALIASES), n, CLAIM_LABELS[n % 2])
    for n in range(COUNT)
]
KEY = AnswerKey.from_cases(LABELLED)
OPPOSITE = AnswerKey({slot: CLAIM_LABELS[label == CLAIM_LABELS[0]] for slot, label in KEY.slots.items()})
"""Answer key with every label inverted."""


def message(turn: int, stance: str, text: str = "It is as said.", says: str = "AGREE") -> dict[str, Any]:
    """Message of the debater of this turn; `stance` is the stance on the claim."""
    return {"turn": turn, "speaker": f"debater {2 - turn % 2}", "text": text, "says": says, "stance": stance}


def debating(
    text: str, said: Sequence[Mapping[str, Any]] = (), evidence: Sequence[str] = EVIDENCE
) -> Sequence[Message]:
    """Prompt of the debater of the next turn, after the messages `said`."""
    known = bool(said) and said[-1]["stance"] in ("supports", "denies")
    shown = {"messages": said, "about": "message" if known else "claim", "conflicts": []}
    return TEMPLATES.render("ceda/debater", ROLE | PLAIN | shown | _material(text, evidence))


def ruling(
    text: str, sides: Sequence[str], evidence: Sequence[str] = EVIDENCE, conflicts: Sequence[str] = ()
) -> Sequence[Message]:
    """Prompt of the judge, after messages with the stances `sides`."""
    shown = {
        "messages": [message(turn, side) for turn, side in enumerate(sides, 1)],
        "conflicts": [{"between": each, "text": "The numbers differ."} for each in conflicts],
        "disagreements": ["Whether it holds."] if len(set(sides)) > 1 else [],
    }
    return TEMPLATES.render("ceda/judge", PLAIN | shown | _material(text, evidence))


def _material(text: str, evidence: Sequence[str]) -> dict[str, Any]:
    items = [{"number": f"E{n}", "source": f"notes.txt, chunk {n}", "text": each} for n, each in enumerate(evidence, 1)]
    return {"claim": text, "evidence": items}


def extraction(text: str) -> Sequence[Message]:
    return TEMPLATES.render("ceda/image_prompt", ROLE | {"claim": text})


def vision_prompt(looked_for: str, *images: Image) -> list[Message]:
    *before, last = TEMPLATES.render("ceda/image", {"looked_for": looked_for})
    return [*before, msgspec.structs.replace(last, images=images)]
