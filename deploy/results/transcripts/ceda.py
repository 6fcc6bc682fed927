"""The events of a check of a claim as a transcript shows them: evidence, stances, the ruling, versions of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, computed_field

from moot.deploy.results.base_models import EventShape, parse_event
from moot.deploy.results.report.blocks import Block
from moot.deploy.results.text import number
from moot.deploy.results.transcripts.generic_blocks import Kinds, titled_blocks
from moot.deploy.results.transcripts.views import EventView
from moot.protocols.ceda.items import place_in_words
from moot.protocols.ceda.stance import About, Relation
from moot.protocols.ceda.stance import Stance as Stance
from moot.protocols.ceda.state import Stage


class EvidenceItem(EventShape):
    """A piece of evidence and its place.

    Attributes:
        id: what prompts and replies call it, such as `E1`.
        kind: a `passage` or `document` of the case or of the run's library, or what was read off a `picture`.
        document: the document's name; None for a picture.
        chunk: 0-based number of the chunk in its document.
        page: 1-based, of a document with pages.
        picture: 0-based number among the case's pictures.
        text: what it says.
        similarity: cosine to the claim, in [-1, 1]; None where it was not searched for.
    """

    id: str
    kind: Literal["passage", "document", "picture"]
    document: str | None = None
    chunk: int | None = None
    page: int | None = None
    picture: int | None = None
    text: str
    similarity: float | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def place(self) -> str:
        """Where it stands, in words: chunks and pictures are counted from 1.

        >>> EvidenceItem(id="E1", kind="document", document="notes.txt", chunk=2, page=4, text="...").place
        'notes.txt, page 4, chunk 3'
        """
        return place_in_words(self.document or self.kind, page=self.page, chunk=self.chunk, picture=self.picture)


class ConflictData(EventShape):
    """Two pieces of evidence that seem to be at odds, by their wording."""

    between: list[str]
    why: str
    detail: str = ""


class StatementData(EventShape):
    """What the evidence says on a point of the claim, by a model; `facts` are pairs of an item and its words."""

    text: str
    facts: list[list[str]]


class SynthesisData(EventShape):
    """What a model made of the evidence: `unfounded` counts what it quoted and is not there, `missing` says why not."""

    statements: list[StatementData] = Field(default_factory=list)
    unfounded: int = 0
    missing: str = ""


class EvidenceData(EventShape):
    """An `evidence` event: what there is to go by, who is shown it, and which pictures (from 0) nobody could read.

    `synthesis` is None where no model was asked about the evidence.
    """

    items: list[EvidenceItem]
    conflicts: list[ConflictData] = Field(default_factory=list)
    shown_to: dict[str, list[str]] = Field(default_factory=dict)
    missing_pictures: list[int] = Field(default_factory=list)
    synthesis: SynthesisData | None = None


class StanceData(EventShape):
    """A `stance` event: what a message says of the last one, and where its debater stands on the claim."""

    turn: int
    debater: str
    says: Relation | None
    of: About
    stance: Stance | None
    stated: bool = False
    implied: Stance | None = None
    consensus: bool


class JudgeRuling(EventShape):
    """What one judge ruled; `missing` says why it did not."""

    judge: str
    verdict: Literal[0, 1] | None
    confidence: float | None = None
    summary: str = ""
    missing: str = ""


class ClassifierReading(EventShape):
    """What the classifier makes of the summary."""

    p_hallucinated: float
    trained_on: bool = False


class RulingData(EventShape):
    """A `ruling` event: the judges' votes, and the classifier's reading."""

    judges: list[JudgeRuling]
    verdict: Literal[0, 1] | None
    p_hallucinated: float | None = None
    summary: str = ""
    classifier: ClassifierReading | None = None


class CheckPayload(EventShape):
    """What the verdict on a claim says of itself: `verdict` is the judges' bare one."""

    p_hallucinated: float | None
    verdict: Literal[0, 1] | None
    classifier: ClassifierReading | None
    summary: str

    @property
    def source(self) -> Literal["classifier", "judges"] | None:
        """Where the label is from; None when there is none."""
        if self.classifier is not None:
            return "classifier"
        return None if self.verdict is None else "judges"


class StateData(EventShape):
    """A `state` event: a version of the state, by what was added."""

    version: int
    stage: Stage
    by: str
    added: dict[str, Any]


VERDICTS: Mapping[int | None, str] = {1: "supported", 0: "hallucinated", None: "undecided"}
"""A judge's verdict in words."""


def _evidence(event: EventView, data: EvidenceData) -> list[Block]:
    if not data.items:
        return titled_blocks("no evidence")
    readers = {item.id: [name for name, ids in data.shown_to.items() if item.id in ids] for item in data.items}
    rows = [
        (item.id, item.place, similarity_words(item), ", ".join(readers[item.id]) or "judges") for item in data.items
    ]
    lines = [f"{item.id}: {item.text}" for item in data.items]
    lines += [f"{' and '.join(each.between)} seem to be at odds ({each.why}): {each.detail}" for each in data.conflicts]
    lines += _synthesis_lines(data.synthesis)
    lines += [f"picture {picture + 1} could not be described" for picture in data.missing_pictures]
    return titled_blocks("evidence", ("", "place", "similarity", "shown to"), rows, lines)


def _synthesis_lines(made: SynthesisData | None) -> list[str]:
    if made is None:
        return []
    lines = [
        f"{', '.join(dict.fromkeys(fact[0] for fact in each.facts if fact))} as summed up: {each.text}"
        for each in made.statements
    ]
    lines += [f"not in the item named, and not used: {made.unfounded}"] if made.unfounded else []
    return lines + ([f"the context agent is missing: {made.missing}"] if made.missing else [])


def _stance(event: EventView, data: StanceData) -> list[Block]:
    said = stance_words(data.says, data.of, data.stance)
    if data.stated and data.implied and data.stance != data.implied:
        said += f" (its {data.says} alone would mean: {data.implied})"
    return titled_blocks(f"{data.debater} {said}" + ("; both hold the same" if data.consensus else ""))


def stance_words(says: Literal["AGREE", "DENY"] | None, of: Literal["claim", "message"], stance: Stance | None) -> str:
    """What a message says first, of what, and where that leaves the claim.

    >>> stance_words("DENY", "message", "denies"), stance_words(None, "claim", None)
    ('says DENY to the message before: denies the claim', 'says neither AGREE nor DENY to the claim: stance unknown')
    """
    what = "the claim" if of == "claim" else "the message before"
    held = f"{stance} the claim" if stance else "stance unknown"
    return f"says {says or 'neither AGREE nor DENY'} to {what}: {held}"


def similarity_words(item: EvidenceItem) -> str:
    """How near it is to the claim; a picture is not searched for and has none."""
    return "-" if item.kind == "picture" else number(item.similarity, 2)


def _ruling(event: EventView, data: RulingData) -> list[Block]:
    rows = [(each.judge, ruling_words(each), number(each.confidence, 2)) for each in data.judges]
    lines = []
    if data.classifier is not None:
        seen = "; it was trained on this claim" if data.classifier.trained_on else ""
        lines = [f"the classifier: hallucinated with probability {number(data.classifier.p_hallucinated)}{seen}"]
    return titled_blocks(f"the judges: {VERDICTS[data.verdict]}", ("judge", "verdict", "confidence"), rows, lines)


def ruling_words(ruling: JudgeRuling) -> str:
    """What a judge ruled, or why it is missing."""
    return f"missing: {ruling.missing}" if ruling.missing else VERDICTS[ruling.verdict]


def check_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """What the verdict on a claim says beside the events; None for any other payload."""
    told = parse_event(CheckPayload, payload)
    if told is None:
        return None
    pairs = [("label from", f"the {told.source}" if told.source else "nobody")]
    if told.source == "classifier":
        pairs.append(("judges alone", VERDICTS[told.verdict]))
    return [*pairs, ("p_hallucinated", number(told.p_hallucinated))]


def _state(event: EventView, data: StateData) -> list[Block]:
    return titled_blocks(
        f"version {data.version} ({data.stage}), by {data.by}: {', '.join(data.added) or 'nothing new'}"
    )


KINDS: Kinds = {
    "evidence": (EvidenceData, _evidence),
    "stance": (StanceData, _stance),
    "ruling": (RulingData, _ruling),
    "state": (StateData, _state),
}
"""The events of a check by kind."""
