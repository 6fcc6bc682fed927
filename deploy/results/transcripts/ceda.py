"""Report blocks of CEDA's events: evidence, stances, ruling and versions of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from moot.deploy.results.report.blocks import Block
from moot.deploy.results.text import number
from moot.deploy.results.transcripts.generic_blocks import Kinds, titled_blocks
from moot.deploy.results.transcripts.views import EventView
from moot.protocols.ceda.events import (
    CheckPayload,
    EvidenceGathered,
    JudgeRuling,
    RulingGiven,
    StanceTaken,
    StateAdvanced,
)
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.stance import Stance
from moot.protocols.ceda.synthesis import EvidenceSynthesis

VERDICTS: Mapping[int | None, str] = {1: "supported", 0: "hallucinated", None: "undecided"}
"""Texts for a judge's verdict."""


def _evidence(event: EventView, data: EvidenceGathered) -> list[Block]:
    if not data.items:
        return titled_blocks("no evidence")
    readers = {item.id: [name for name, ids in data.shown_to.items() if item.id in ids] for item in data.items}
    rows = [
        (item.id, item.source, similarity_words(item), ", ".join(readers[item.id]) or "judges") for item in data.items
    ]
    lines = [f"{item.id}: {item.text}" for item in data.items]
    lines += [
        f"{' and '.join(each.between)} seem to contradict each other ({each.why}): {each.detail}"
        for each in data.conflicts
    ]
    lines += _synthesis_lines(data.synthesis)
    lines += [f"picture {picture + 1} could not be described" for picture in data.missing_pictures]
    return titled_blocks("evidence", ("", "place", "similarity", "shown to"), rows, lines)


def _synthesis_lines(synthesis: EvidenceSynthesis | None) -> list[str]:
    if synthesis is None:
        return []
    lines = [f"{', '.join(each.sources)} summarised: {each.text}" for each in synthesis.statements]
    lines += [f"not in the cited item, and not used: {synthesis.unfounded}"] if synthesis.unfounded else []
    return lines + ([f"the context agent is missing: {synthesis.missing}"] if synthesis.missing else [])


def _stance(event: EventView, data: StanceTaken) -> list[Block]:
    words = stance_words(data.says, data.of, data.stance)
    if data.stated and data.implied and data.stance != data.implied:
        words += f" (its {data.says} alone would mean: {data.implied})"
    return titled_blocks(f"{data.debater} {words}" + ("; both agree" if data.consensus else ""))


def stance_words(says: Literal["AGREE", "DENY"] | None, of: Literal["claim", "message"], stance: Stance | None) -> str:
    """Text of a stance: AGREE or DENY, its target, and the resulting stance on the claim.

    >>> stance_words("DENY", "message", "denies"), stance_words(None, "claim", None)
    ('says DENY to the message before: denies the claim', 'says neither AGREE nor DENY to the claim: stance unknown')
    """
    target = "the claim" if of == "claim" else "the message before"
    result = f"{stance} the claim" if stance else "stance unknown"
    return f"says {says or 'neither AGREE nor DENY'} to {target}: {result}"


def similarity_words(item: Item) -> str:
    """Text of an evidence item's similarity to the claim; a picture has none, because it is not retrieved."""
    return "-" if item.kind == "picture" else number(item.similarity, 2)


def _ruling(event: EventView, data: RulingGiven) -> list[Block]:
    rows = [(each.judge, ruling_words(each), number(each.confidence, 2)) for each in data.judges]
    lines = []
    if data.classifier is not None:
        trained = "; it was trained on this claim" if data.classifier.trained_on else ""
        lines = [f"the classifier: hallucinated with probability {number(data.classifier.p_hallucinated)}{trained}"]
    return titled_blocks(f"the judges: {VERDICTS[data.verdict]}", ("judge", "verdict", "confidence"), rows, lines)


def ruling_words(ruling: JudgeRuling) -> str:
    """Text of a judge's ruling, or the reason why it is missing."""
    return f"missing: {ruling.missing}" if ruling.missing else VERDICTS[ruling.verdict]


def check_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Pairs of name and text of a payload on a claim, without its events; None for any other payload."""
    check = CheckPayload.read(payload)
    if check is None:
        return None
    pairs = [("label from", f"the {check.source}" if check.source else "nobody")]
    if check.source == "classifier":
        pairs.append(("judges alone", VERDICTS[check.verdict]))
    return [*pairs, ("p_hallucinated", number(check.p_hallucinated))]


def _state(event: EventView, data: StateAdvanced) -> list[Block]:
    return titled_blocks(
        f"version {data.version} ({data.stage}), by {data.by}: {', '.join(data.added) or 'nothing new'}"
    )


KINDS: Kinds = (
    (EvidenceGathered, _evidence),
    (StanceTaken, _stance),
    (RulingGiven, _ruling),
    (StateAdvanced, _state),
)
"""Types of CEDA's events with their report blocks."""
