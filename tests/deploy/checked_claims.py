"""A tiny protocol over claims: one ask, and a verdict as claim checking gives it, drawn from the case's id."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, ClassVar

from moot.protocols.case import Case
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict
from moot.protocols.replies import FreeText

TEMPLATE = (
    "{% block system %}Say AGREE or DENY.{% endblock %}{% block user %}{{ claim | fenced('claim') }}{% endblock %}"
)
OTHER = {SUPPORTED: HALLUCINATED, HALLUCINATED: SUPPORTED}
STANCES = {SUPPORTED: "supports", HALLUCINATED: "denies"}


class CheckedClaims:
    """Asks once; what the claim is stands in its text, for nothing is to be found out here."""

    name = "checked-claims"
    roles = ("debater",)
    templates: ClassVar = {"checked/say": TEMPLATE}

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        await floor.ask("debater/0", "checked/say", {"claim": case.question}, reply=FreeText, path="turn/1")
        return verdict_on(case.id, HALLUCINATED if "made up" in case.question else SUPPORTED)


def verdict_on(case_id: str, truth: str) -> Verdict:
    """A verdict that is right eight times in ten, and its payload: everything follows from the id."""
    draws = [byte / 255 for byte in sha256(case_id.encode()).digest()]

    def said(place: int, right: float) -> str:
        return truth if draws[place] < right else OTHER[truth]

    answer = None if draws[0] > 0.97 else said(1, 0.8)
    p = 0.2 + 0.6 * (draws[5] if said(1, 0.8) == HALLUCINATED else -draws[5] / 6)
    bare = None if draws[6] > 0.95 else said(2, 0.7)
    payload: dict[str, Any] = {
        "p_hallucinated": p,
        "source": "classifier",
        "verdict": None if bare is None else 1 - CLAIM_LABELS.index(bare),
        "p_judges": None if bare is None else 0.1 + 0.8 * CLAIM_LABELS.index(bare),
        "classifier": {"p_hallucinated": p, "trained_on": draws[7] < 0.05},
        "first_stances": {"debater/0": STANCES[said(3, 0.75)], "debater/1": STANCES[said(4, 0.75)]},
    }
    return Verdict(answer=answer, how="consensus", rounds=2, payload=payload)


def claim_cases(pairs: int) -> list[dict[str, Any]]:
    """Pairs of claims about one question, in two categories."""
    return [
        {
            "id": f"q{pair:03d}-{label}",
            "question": f"Question: What is number {pair}? Answer: {'made up' if label == HALLUCINATED else 'known'}",
            "labels": list(CLAIM_LABELS),
            "gold": label,
            "group": f"q{pair:03d}",
            "tags": {"category": ("Law", "Myths")[pair % 2]},
        }
        for pair in range(pairs)
        for label in CLAIM_LABELS
    ]
