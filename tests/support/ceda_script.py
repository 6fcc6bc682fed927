"""Scripted CEDA debates: claims, evidence, and replies by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripted_floor import Script, ScriptedFloor, run_debate

from moot.protocols.case import Case, Image
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS
from moot.protocols.messages import Verdict

CLAIM = "The old bridge opened in 1932."
AGREE, DENY, UNCLEAR = "AGREE: E1 says so.", "DENY: E1 says otherwise.", "It rained."
ODD = "The old bridge opened in 1932.\n\nThe old bridge opened in 1934."
PICTURES = (Image("image/png", b"one"), Image("image/webp", b"two"))


def claim_case(question: str = CLAIM, **more: Any) -> Case:
    """A claim to check, as a case."""
    return Case(id="c", question=question, labels=CLAIM_LABELS, aliases=CLAIM_ALIASES, **more)


def ruling(verdict: Any = 1, confidence: Any = 0.8, summary: str = "E1 settles it.", **more: Any) -> dict[str, Any]:
    """Reply of a judge."""
    return {"consensus": True, "summary": summary, "verdict": verdict, "confidence": confidence, **more}


def messages(*texts: str | None) -> dict[str, Any]:
    """Script of a debate from one text per turn; None makes the debater fail."""
    return {f"turn/{k}": None if text is None else {"text": text} for k, text in enumerate(texts, start=1)}


GOOD: Mapping[str, Any] = {
    "turn/*": {"says": "AGREE", "text": AGREE, "stance": "supports"},
    "judge/*": ruling(),
    "context": {"statements": [{"text": "It is old.", "facts": [{"item": "E1", "quote": "old bridge"}]}]},
    "vision/prompt": {"text": "Look for a date."},
    "vision/image/*": {"text": "A bridge with a date."},
}


async def run_check(
    case: Case | None = None, changes: Script | None = None, settings: Mapping[str, Any] | None = None, **floor: Any
) -> tuple[ScriptedFloor, Verdict]:
    """Run a debate with `changes` to its script."""
    return await run_debate(
        "ceda", case or claim_case(passage="It is an old bridge."), GOOD, changes, settings, **floor
    )


def states(floor: ScriptedFloor) -> list[dict[str, Any]]:
    """Data of the events of kind `state`, in the order of the record."""
    return [event.data for event in floor.events if event.kind == "state"]


def stances(floor: ScriptedFloor) -> list[Any]:
    """Stance of each message."""
    return [event.data["stance"] for event in floor.events if event.kind == "stance"]
