"""The events of a check of a claim, as they must look to be shown as such."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, computed_field

from moot.deploy.reading.frozen import Shape
from moot.protocols.ceda.items import place_in_words
from moot.protocols.ceda.stance import About, Relation
from moot.protocols.ceda.stance import Stance as Stance
from moot.protocols.ceda.state import Stage


class EvidenceItem(Shape):
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


class Conflict(Shape):
    """Two pieces of evidence that seem to be at odds, by their wording."""

    between: list[str]
    why: str
    detail: str = ""


class Statement(Shape):
    """What the evidence says on a point of the claim, by a model; `facts` are pairs of an item and its words."""

    text: str
    facts: list[list[str]]


class Synthesis(Shape):
    """What a model made of the evidence: `unfounded` counts what it quoted and is not there, `missing` says why not."""

    statements: list[Statement] = Field(default_factory=list)
    unfounded: int = 0
    missing: str = ""


class EvidenceData(Shape):
    """An `evidence` event: what there is to go by, who is shown it, and which pictures (from 0) nobody could read.

    `synthesis` is None where no model was asked about the evidence.
    """

    items: list[EvidenceItem]
    conflicts: list[Conflict] = Field(default_factory=list)
    shown_to: dict[str, list[str]] = Field(default_factory=dict)
    missing_pictures: list[int] = Field(default_factory=list)
    synthesis: Synthesis | None = None


class StanceData(Shape):
    """A `stance` event: what a message says of the last one, and where its debater stands on the claim."""

    turn: int
    debater: str
    says: Relation | None
    of: About
    stance: Stance | None
    stated: bool = False
    implied: Stance | None = None
    consensus: bool


class JudgeRuling(Shape):
    """What one judge ruled; `missing` says why it did not."""

    judge: str
    verdict: Literal[0, 1] | None
    confidence: float | None = None
    summary: str = ""
    missing: str = ""


class ClassifierReading(Shape):
    """What the classifier makes of the summary."""

    p_hallucinated: float
    trained_on: bool = False


class RulingData(Shape):
    """A `ruling` event: the judges' votes, and the classifier's reading."""

    judges: list[JudgeRuling]
    verdict: Literal[0, 1] | None
    p_hallucinated: float | None = None
    summary: str = ""
    classifier: ClassifierReading | None = None


class CheckPayload(Shape):
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


class StateData(Shape):
    """A `state` event: a version of the state, by what was added."""

    version: int
    stage: Stage
    by: str
    added: dict[str, Any]
