"""The events of a check of a claim as a transcript shows them: evidence, stances, the ruling, versions of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from moot.deploy.reading.ceda_events import (
    CheckPayload,
    EvidenceData,
    EvidenceItem,
    JudgeRuling,
    RulingData,
    Stance,
    StanceData,
    StateData,
    Synthesis,
)
from moot.deploy.reading.frozen import read_as
from moot.deploy.reading.report.blocks import Block
from moot.deploy.reading.text import number
from moot.deploy.reading.transcripts.shown import Kinds, noted
from moot.deploy.reading.transcripts.views import EventView

VERDICTS: Mapping[int | None, str] = {1: "supported", 0: "hallucinated", None: "undecided"}
"""A judge's verdict in words."""


def _evidence(event: EventView, data: EvidenceData) -> list[Block]:
    if not data.items:
        return noted("no evidence")
    readers = {item.id: [name for name, ids in data.shown_to.items() if item.id in ids] for item in data.items}
    rows = [(item.id, item.place, similarity(item), ", ".join(readers[item.id]) or "judges") for item in data.items]
    lines = [f"{item.id}: {item.text}" for item in data.items]
    lines += [f"{' and '.join(each.between)} seem to be at odds ({each.why}): {each.detail}" for each in data.conflicts]
    lines += _synthesis_lines(data.synthesis)
    lines += [f"picture {picture + 1} could not be described" for picture in data.missing_pictures]
    return noted("evidence", ("", "place", "similarity", "shown to"), rows, lines)


def _synthesis_lines(made: Synthesis | None) -> list[str]:
    """What a model made of the evidence, and what of that was not used."""
    if made is None:
        return []
    lines = [
        f"{', '.join(dict.fromkeys(fact[0] for fact in each.facts if fact))} as summed up: {each.text}"
        for each in made.statements
    ]
    lines += [f"not in the item named, and not used: {made.unfounded}"] if made.unfounded else []
    return lines + ([f"the context agent is missing: {made.missing}"] if made.missing else [])


def _stance(event: EventView, data: StanceData) -> list[Block]:
    said = said_in_words(data.says, data.of, data.stance)
    if data.stated and data.implied and data.stance != data.implied:
        said += f" (its {data.says} alone would mean: {data.implied})"
    return noted(f"{data.debater} {said}" + ("; both hold the same" if data.consensus else ""))


def said_in_words(says: Literal["AGREE", "DENY"] | None, of: Literal["claim", "message"], stance: Stance | None) -> str:
    """What a message says first, of what, and where that leaves the claim.

    >>> said_in_words("DENY", "message", "denies"), said_in_words(None, "claim", None)
    ('says DENY to the message before: denies the claim', 'says neither AGREE nor DENY to the claim: stance unknown')
    """
    what = "the claim" if of == "claim" else "the message before"
    held = f"{stance} the claim" if stance else "stance unknown"
    return f"says {says or 'neither AGREE nor DENY'} to {what}: {held}"


def similarity(item: EvidenceItem) -> str:
    """How near it is to the claim; a picture is not searched for and has none."""
    return "-" if item.kind == "picture" else number(item.similarity, 2)


def _ruling(event: EventView, data: RulingData) -> list[Block]:
    rows = [(each.judge, ruled(each), number(each.confidence, 2)) for each in data.judges]
    lines = []
    if data.classifier is not None:
        seen = "; it was trained on this claim" if data.classifier.trained_on else ""
        lines = [f"the classifier: hallucinated with probability {number(data.classifier.p_hallucinated)}{seen}"]
    return noted(f"the judges: {VERDICTS[data.verdict]}", ("judge", "verdict", "confidence"), rows, lines)


def ruled(ruling: JudgeRuling) -> str:
    """What a judge ruled, or why it is missing."""
    return f"missing: {ruling.missing}" if ruling.missing else VERDICTS[ruling.verdict]


def check_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """What the verdict on a claim says beside the events; None for any other payload."""
    told = read_as(CheckPayload, payload)
    if told is None:
        return None
    pairs = [("label from", f"the {told.source}" if told.source else "nobody")]
    if told.source == "classifier":
        pairs.append(("judges alone", VERDICTS[told.verdict]))
    return [*pairs, ("p_hallucinated", number(told.p_hallucinated))]


def _state(event: EventView, data: StateData) -> list[Block]:
    return noted(f"version {data.version} ({data.stage}), by {data.by}: {', '.join(data.added) or 'nothing new'}")


KINDS: Kinds = {
    "evidence": (EvidenceData, _evidence),
    "stance": (StanceData, _stance),
    "ruling": (RulingData, _ruling),
    "state": (StateData, _state),
}
"""The events of a check by kind."""
