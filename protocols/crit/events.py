"""The event of a reading by CRIT."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from moot.protocols.events import DebateEvent, EventData


class CritPoint(EventData):
    """A reason or a rival, with the judge's marks and the values that count.

    Attributes:
        text: the reason in the judge's words.
        why: the judge's justification of its marks; empty if it gave none.
        gamma: how well it supports the claim (a rival: opposes it), in [0, 1].
        theta: credibility of its source, in [0, 1].
        s: its contribution to the score, in [0, 1].
        stated_gamma: the gamma that the judge gave.
        is_claim: whether the judge calls it a claim.
        contradicts_facts: whether it contradicts a given fact; `gamma` is then 0.
        repeats: index of the earlier point that it repeats, so that it does not count; None if it counts.
        unread: why a claim was not read deeper; empty otherwise.
        repairs: marks that were not written as numbers.
        deeper: the reading of the reason as a separate document.
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
    """One judge's reading of a document.

    Attributes:
        missing: why there is no reading; empty if there is one. Not recorded for a deeper reading.
        calls: number of asks, including deeper readings. Not recorded for a deeper reading.
        depth: depth of the reading: 0 without deeper readings. Not recorded for a deeper reading.
        claim: the claim that the document argues for.
        score: Gamma, in [0, 1]; None if the document gives no reason.
        reasons, rivals: all of them, in the judge's order, including those that do not count.
        justification, reflection: in the judge's words.
        source: 0-based number of the source that was read; None for the document's own text.
        notes: remarks on the score.
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
    """All judges' readings of a document, at the path of the reading.

    Attributes:
        score: mean Gamma over the judges that gave one, in [0, 1]; None if none did.
        by_judge: each judge's Gamma; None if it gave none.
        missing: the judges that failed, and why.
        weak: texts of the weak reasons, the weakest first; in older records the weakest ones, however strong.
        contradicted: texts of the reasons that contradict the given facts, by any judge.
        notes: remarks on the score, by any judge.
        calls: number of asks to judges.
        depth: depth of the deepest reading.
        judges: each judge's reading.
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
