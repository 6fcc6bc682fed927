"""How the simulated model reads a prompt about a claim: the claim, the evidence, and where each message stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moot.actors.models.simulated.judges import content_words
from moot.actors.models.simulated.prompt import SeenPrompt
from moot.protocols.ceda.stance import Stance as Side
from moot.protocols.claims import HALLUCINATED, SUPPORTED

AGREE, DENY = "AGREE", "DENY"
"""The words of which one begins a message."""

SIDE_LABELS: dict[Side, str] = {"supports": SUPPORTED, "denies": HALLUCINATED}
"""The label that each side believes in."""

_KNOWN: dict[str, Side] = {"supports": "supports", "denies": "denies"}

_FRAME = frozenset({"question", "answer", "yes"})
"""Words of a claim that an answer is right, which say nothing of what is claimed."""


@dataclass(frozen=True, slots=True)
class SeenEvidence:
    """A piece of evidence: its number as the prompt gives it, such as `E1`, and its text."""

    number: str
    text: str


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message of the debate: who wrote it, and their side on the claim; None when it is not known."""

    speaker: str
    side: Side | None


def claim_of(prompt: SeenPrompt) -> str:
    """The claim; where none is marked, the message that is answered, which then is the claim."""
    return prompt.first("claim") or prompt.first("last_message")


def evidence_of(prompt: SeenPrompt) -> list[SeenEvidence]:
    """The pieces of evidence, in order; those without a number get their place."""
    shown = enumerate(prompt.tagged("evidence"), 1)
    return [SeenEvidence(fence.attributes.get("number") or f"E{place}", fence.body) for place, fence in shown]


def telling_words(claim: str) -> frozenset[str]:
    """The words by which a claim is compared with evidence, in lower case."""
    return content_words(claim) - _FRAME


def covered_words(claim: str, evidence: Iterable[SeenEvidence]) -> frozenset[str]:
    """The telling words of the claim that stand in any of the evidence."""
    found: frozenset[str] = frozenset().union(*(content_words(each.text) for each in evidence))
    return telling_words(claim) & found


def evidence_lean(claim: str, evidence: Sequence[SeenEvidence]) -> float:
    """How the evidence leans, from -1 (it has none of the claim's telling words) to 1 (all); 0 without evidence."""
    words = telling_words(claim)
    return 2.0 * len(covered_words(claim, evidence)) / len(words) - 1.0 if words and evidence else 0.0


def heard_sides(prompt: SeenPrompt) -> list[Side | None]:
    """The sides that all messages so far take, that which is answered included, in order."""
    return [message.side for message in judged_messages(prompt)]


def judged_messages(prompt: SeenPrompt) -> list[SeenMessage]:
    """The messages so far, with the sides that the prompt says they take."""
    shown = [fence.attributes for fence in prompt.tagged("message")]
    return [SeenMessage(each.get("speaker", ""), _KNOWN.get(each.get("stance", ""))) for each in shown]
