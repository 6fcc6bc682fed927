"""The event of a reading by CRIT."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from moot.protocols.events import DebateEvent, EventData


class CritPoint(EventData):
    """A reason or a rival, as the judge stated it and as it counts.

    Attributes:
        text: in the judge's words.
        why: the judge's ground for its marks; empty where it gave none.
        gamma: how well it speaks for the claim (a rival: against it), in [0, 1].
        theta: how credible its source is, in [0, 1].
        s: what it says of the claim, in [0, 1].
        stated_gamma: as the judge gave it.
        is_claim: whether the judge calls it a claim.
        contradicts_facts: whether it contradicts a given fact; `gamma` is then 0.
        repeats: place of the earlier one that it repeats, so that it does not count; None when it counts.
        unread: why a claim was not read deeper; empty otherwise.
        repairs: its marks that were not written as numbers.
        deeper: the reading of the reason as a document of its own.
    """

    text: str
    why: Any = ""
    gamma: float
    theta: float
    s: float
    stated_gamma: Any = None
    is_claim: Any = False
    contradicts_facts: bool = False
    repeats: int | None = None
    unread: Any = ""
    repairs: Any = ()
    deeper: CritReading | None = None


class CritReading(EventData):
    """What one judge made of a document.

    Attributes:
        missing: why there is nothing else; empty when there is. Of a deeper reading not recorded.
        calls: how often it was asked, deeper readings included. Of a deeper reading not recorded.
        depth: how deep it read: 0 without deeper readings. Of a deeper reading not recorded.
        claim: what the document argues for.
        score: Gamma, in [0, 1]; None when the document brings no reason.
        reasons, rivals: in the judge's order, those that do not count included.
        justification, reflection: in the judge's words.
        source: 0-based number of the source that was read; None for the document's own text.
        notes: what should be known of the score.
    """

    missing: Any = ""
    calls: Any = None
    depth: Any = None
    claim: Any = ""
    score: Any = None
    reasons: list[CritPoint] = Field(default_factory=list)
    rivals: list[CritPoint] = Field(default_factory=list)
    justification: Any = ""
    reflection: Any = ""
    source: Any = None
    notes: Any = ()


class CritJudged(DebateEvent):
    """What the judges made of a document, at the path of the reading.

    Attributes:
        score: mean Gamma over the judges that gave one, in [0, 1]; None when none did.
        by_judge: each judge's Gamma; None when it gave none.
        missing: the judges that failed, and why.
        weak: texts of the weakest reasons, the weakest first.
        contradicted: texts of the reasons that contradict the given facts, by any judge.
        notes: what should be known of the score, by any judge.
        calls: how often judges were asked.
        depth: how deep the deepest reading went.
        judges: by judge what it said.
    """

    kind: ClassVar[str] = "crit"

    score: float | None
    by_judge: dict[str, float | None]
    missing: dict[str, str] = Field(default_factory=dict)
    weak: list[str] = Field(default_factory=list)
    contradicted: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    calls: Any = None
    depth: Any = None
    judges: dict[str, CritReading] = Field(default_factory=dict)
