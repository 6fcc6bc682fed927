"""Events of a claim check, and the payload of its verdict."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, computed_field

from moot.protocols.ceda.conflicts import Conflict
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.stance import Stance, StatedPosition
from moot.protocols.ceda.synthesis import EvidenceSynthesis
from moot.protocols.events import DebateEvent, EventData, Listed

Stage = Literal["initial", "intermediate", "output"]


class EvidenceGathered(DebateEvent):
    """The evidence; noted before the first message.

    Attributes:
        items: the nearest first, pictures last.
        conflicts: pairs of items that seem to contradict each other.
        considered: number of pairs that were compared.
        shown_to: by debater, the ids of the items that it sees.
        missing_pictures: 0-based numbers of pictures that could not be described.
        synthesis: a model's statements on the evidence; None if no model was asked.
    """

    kind: ClassVar[str] = "evidence"

    items: Listed[Item]
    conflicts: Listed[Conflict] = ()
    considered: Any = None
    shown_to: dict[str, Listed[str]] = Field(default_factory=dict)
    missing_pictures: Listed[int] = ()
    synthesis: EvidenceSynthesis | None = None


class StanceTaken(DebateEvent, StatedPosition):
    """The stance of a message; noted after each message.

    It has the fields of `stance.Position`, too: `turn`, `debater`, `says`, `of`, `stance`, `stated` and `implied`.

    Attributes:
        consensus: whether both debaters now have the same stance.
    """

    kind: ClassVar[str] = "stance"

    consensus: bool


class JudgeRuling(EventData):
    """One judge's ruling.

    Attributes:
        judge: the judge's full role name.
        verdict: 1 for supported, 0 for hallucinated; None without a verdict.
        confidence: the stated confidence, in [0, 1]; None if none was stated.
        summary: the judge's summary of the debate.
        missing: why there is no ruling; empty when there is one.
    """

    judge: str
    verdict: Literal[0, 1] | None
    confidence: float | None = None
    summary: str = ""
    missing: str = ""


class PanelJudgeRuling(JudgeRuling):
    """One judge's ruling as it is recorded.

    Attributes:
        consensus: whether the judge finds that the debaters agree; None when it does not say.
    """

    consensus: Any = None


class ClassifierReading(EventData):
    """The classifier's result for the judges' summary.

    Attributes:
        p_hallucinated: probability of hallucinated, in [0, 1].
        trained_on: whether the classifier was trained on this claim, so that its result proves nothing.
    """

    p_hallucinated: float = Field(ge=0.0, le=1.0)
    trained_on: bool = False


class SummaryGiven(DebateEvent):
    """The part of a ruling that a classifier is trained on; any protocol may note it for a claim.

    Attributes:
        verdict: the judges' bare verdict, 1 for supported and 0 for hallucinated.
        summary: the summary of the first judge with that verdict.
        classifier_text: the summary and the points behind it; older records have the summary alone.
    """

    kind: ClassVar[str] = "ruling"

    verdict: Any = None
    summary: str = ""
    classifier_text: str | None = None


class RulingGiven(SummaryGiven):
    """The judges' rulings and the classifier's result; noted once, at the end.

    Attributes:
        judges: the rulings, in the panel's order.
        verdict: the majority's verdict; None for a tie, or if all judges abstain.
        p_hallucinated: mean of the probabilities of the judges with a verdict, in [0, 1]; None unless each of them
            states one.
        classifier: the classifier's result; None without a classifier.
    """

    judges: Listed[PanelJudgeRuling]
    verdict: Literal[0, 1] | None
    p_hallucinated: float | None = None
    classifier: ClassifierReading | None = None


class StateAdvanced(DebateEvent):
    """A version of the state; noted with each version.

    Attributes:
        version: number of the version, from 0.
        stage: `initial`, `intermediate` or `output`.
        by: the step that added to the state.
        added: what this version adds, not the whole state; see `state.StateContent`.
    """

    kind: ClassVar[str] = "state"

    version: int
    stage: Stage
    by: str
    added: dict[str, Any]


class ClaimPayload(EventData):
    """The payload of any protocol's verdict on a claim.

    Attributes:
        verdict: the judges' bare verdict, 1 for supported and 0 for hallucinated.
        p_judges: the judges' probability that the claim is hallucinated, in [0, 1]; None when unknown.
        classifier: the classifier's result; None without one.
        first_stances: by debater, the stance of its first message; None if unknown.
    """

    verdict: Literal[0, 1] | None = None
    p_judges: float | None = Field(default=None, ge=0.0, le=1.0)
    classifier: ClassifierReading | None = None
    first_stances: dict[str, Stance | None] = Field(default_factory=dict)


class CheckPayload(ClaimPayload):
    """The payload of a check's verdict.

    Attributes:
        p_hallucinated: probability that the claim is hallucinated, in [0, 1]; None when unknown.
        summary: the judges' summary.
        agreed, disputed: points of the debate, by the judge whose summary counts.
        stances: by debater, the stance of its last message.
    """

    verdict: Literal[0, 1] | None
    classifier: ClassifierReading | None
    p_hallucinated: float | None
    summary: str
    agreed: Any = None
    disputed: Any = None
    stances: Any = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def source(self) -> Literal["classifier", "judges"] | None:
        """Where the label is from; None when there is none."""
        if self.classifier is not None:
            return "classifier"
        return None if self.verdict is None else "judges"
