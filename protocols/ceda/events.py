"""The events of a check of a claim, and what its verdict says of itself."""

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
    """Noted before the first message: what there is to go by.

    Attributes:
        items: the nearest first, pictures last.
        conflicts: pairs of items that seem to be at odds.
        considered: how many pairs were looked at.
        shown_to: by debater the ids of the items that it is shown.
        missing_pictures: 0-based numbers of pictures that nobody could describe.
        synthesis: what a model made of the evidence; None where none was asked.
    """

    kind: ClassVar[str] = "evidence"

    items: Listed[Item]
    conflicts: Listed[Conflict] = ()
    considered: Any = None
    shown_to: dict[str, Listed[str]] = Field(default_factory=dict)
    missing_pictures: Listed[int] = ()
    synthesis: EvidenceSynthesis | None = None


class StanceTaken(DebateEvent, StatedPosition):
    """Noted after each message: what it says of the last one, and where its debater stands on the claim.

    It has the fields of `stance.Position`, too: `turn`, `debater`, `says`, `of`, `stance`, `stated` and `implied`.

    Attributes:
        consensus: whether both debaters now hold the same.
    """

    kind: ClassVar[str] = "stance"

    consensus: bool


class JudgeRuling(EventData):
    """One judge's ruling.

    Attributes:
        judge: its full role name.
        verdict: 1 for supported, 0 for hallucinated; None for none.
        confidence: stated, in [0, 1]; None when none is.
        summary: of the debate.
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
    """What the run's classifier makes of the judges' summary.

    Attributes:
        p_hallucinated: in [0, 1].
        trained_on: whether it was trained on this very claim, so that its reading proves nothing.
    """

    p_hallucinated: float = Field(ge=0.0, le=1.0)
    trained_on: bool = False


class SummaryGiven(DebateEvent):
    """What a classifier is trained on of a ruling: any protocol's that notes it of a claim.

    Attributes:
        verdict: the judges' bare one, 1 for supported and 0 for hallucinated.
        summary: of the first judge who holds the verdict.
        classifier_text: the summary and the points behind it; older records have the summary alone.
    """

    kind: ClassVar[str] = "ruling"

    verdict: Any = None
    summary: str = ""
    classifier_text: str | None = None


class RulingGiven(SummaryGiven):
    """Noted once, at the end: the judges' rulings, and the classifier's reading.

    Attributes:
        judges: in the panel's order.
        verdict: the majority's; None for a tie, or when all abstain.
        p_hallucinated: mean of what those with a verdict state, in [0, 1]; None unless each of them states it.
        classifier: None without one.
    """

    judges: Listed[PanelJudgeRuling]
    verdict: Literal[0, 1] | None
    p_hallucinated: float | None = None
    classifier: ClassifierReading | None = None


class StateAdvanced(DebateEvent):
    """Noted with each version of the state.

    Attributes:
        version: from 0.
        stage: initial, intermediate or output.
        by: who added to it.
        added: what was added, not all that is known; see `state.StateContent`.
    """

    kind: ClassVar[str] = "state"

    version: int
    stage: Stage
    by: str
    added: dict[str, Any]


class ClaimPayload(EventData):
    """What any protocol's verdict on a claim may say beside its answer.

    Attributes:
        verdict: the judges' bare one, 1 for supported and 0 for hallucinated.
        p_judges: the judges' probability that the claim is hallucinated, in [0, 1]; None when unknown.
        classifier: the classifier's reading; None without one.
        first_stances: by debater the stance of its first message; None when unknown.
    """

    verdict: Literal[0, 1] | None = None
    p_judges: float | None = Field(default=None, ge=0.0, le=1.0)
    classifier: ClassifierReading | None = None
    first_stances: dict[str, Stance | None] = Field(default_factory=dict)


class CheckPayload(ClaimPayload):
    """What the verdict of a check says beside its answer.

    Attributes:
        p_hallucinated: probability that the claim is hallucinated, in [0, 1]; None when unknown.
        summary: the judges'.
        agreed, disputed: points of the debate, by the judge whose summary counts.
        stances: by debater the stance of its last message.
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
