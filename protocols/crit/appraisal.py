"""Appraisal of a judge's reading of a document: gamma, theta and a score; without model calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moot.protocols.crit.events import CritPoint, CritReading
from moot.protocols.crit.repeats import first_alike
from moot.protocols.crit.replies import Argument, Reading
from moot.protocols.crit.scoring import Rivals, WeightedReason, gamma_of
from moot.protocols.deprecated import deprecated_names


@dataclass(frozen=True, slots=True)
class CritDocument:
    """A document that argues for a claim.

    Attributes:
        claim: what it argues for; if empty, each judge identifies it.
        text: the text; a blank one is not sent to judges and has no score.
        facts: undisputed facts, e.g. a patient's symptoms; arguments are checked against it.
        opposing: texts of the other side; rival reasons may come from them too.
        sources: texts in which a reason that is itself a claim is looked up; by default the text itself.
    """

    claim: str
    text: str
    facts: str = ""
    opposing: str = ""
    sources: tuple[str, ...] = ()


RIVALS_CAPPED = "rivals-capped"
"""Note: a rival that would have raised the score was capped."""

REPEATED_REASONS = "repeated-reasons"
"""Note: a reason or rival repeats an earlier one and is counted once."""

MARKS_REPAIRED = "marks-repaired"
"""Note: a mark was written as `8/10` or `80%`."""

SCALE_DOUBTFUL = "scale-doubtful"
"""Note: no mark is above 1 and one is a fraction: the judge may have used 0 to 1. They count as 0 to 10."""

NO_FACTS = "contradiction-without-facts"
"""Note: the judge reported a contradicted fact although none was given; it is ignored."""

BUDGET_SPENT = "budget-spent"
"""Note: a claim was not read deeper because the call limit was reached."""

DEEPER_FAILED = "deeper-reading-failed"
"""Note: a claim could not be read deeper; the judge's own mark counts."""

TOO_DEEP, NO_BUDGET = "depth", "budget"
"""Reasons why a claim is not read deeper: the greatest depth or the call limit is reached."""


@dataclass(frozen=True, slots=True)
class AppraisedReason:
    """A reason or a rival, with stated and effective values.

    Attributes:
        text: in the judge's words.
        why: the judge's justification of its marks; empty if it gave none.
        weighed: gamma and theta as they enter the score.
        stated: gamma as the judge gave it, in [0, 1].
        is_claim: whether the judge calls it a claim.
        contradicts_facts: whether it contradicts a given fact; its gamma then counts as 0.
        repeats: index of the earlier one that it repeats, so that it does not count; None if it counts.
        deeper: the reading of the reason as a document of its own, whose score replaced gamma if it has one.
        unread: why a claim was not read deeper: `TOO_DEEP`, `NO_BUDGET`, or its request's failure; empty otherwise.
        repairs: its marks that were not written as numbers.
    """

    text: str
    weighed: WeightedReason
    stated: float
    is_claim: bool = False
    contradicts_facts: bool = False
    repeats: int | None = None
    deeper: Appraisal | None = None
    unread: str = ""
    repairs: tuple[str, ...] = ()
    why: str = ""

    @property
    def strength(self) -> float:
        """theta times gamma, in [0, 1]."""
        return self.weighed.theta * self.weighed.gamma

    def record(self) -> CritPoint:
        """Recorded form."""
        return CritPoint(
            text=self.text,
            why=self.why,
            gamma=self.weighed.gamma,
            theta=self.weighed.theta,
            s=self.weighed.s,
            stated_gamma=self.stated,
            is_claim=self.is_claim,
            contradicts_facts=self.contradicts_facts,
            repeats=self.repeats,
            unread=self.unread,
            repairs=list(self.repairs),
            deeper=self.deeper.record() if self.deeper else None,
        )


@dataclass(frozen=True, slots=True)
class Appraisal:
    """One judge's reading of one document, with its score.

    Attributes:
        claim: what the document argues for, as given, else as identified by the judge.
        score: Gamma in [0, 1]; None if the document has no reason.
        reasons, rivals: in the judge's order, including those that do not count.
        justification, reflection: in the judge's words.
        source: which of the document's `sources` was read; None for the document's own text.
        notes: caveats of the score; those of deeper readings begin with `deeper-`.
    """

    claim: str
    score: float | None
    reasons: tuple[AppraisedReason, ...]
    rivals: tuple[AppraisedReason, ...]
    justification: str
    reflection: str
    source: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def counted(self) -> list[AppraisedReason]:
        """Reasons that count."""
        return [reason for reason in self.reasons if reason.repeats is None]

    def record(self) -> CritReading:
        """Recorded form."""
        return CritReading(
            claim=self.claim,
            score=self.score,
            reasons=[point.record() for point in self.reasons],
            rivals=[point.record() for point in self.rivals],
            justification=self.justification,
            reflection=self.reflection,
            source=self.source,
            notes=list(self.notes),
        )


def claims_to_read(document: CritDocument, reading: Reading) -> list[int]:
    """Indices of the reasons that are themselves claims, except repeats and those that contradict a given fact."""
    repeats = first_alike([reason.text for reason in reading.reasons])
    return [
        place
        for place, (reason, earlier) in enumerate(zip(reading.reasons, repeats, strict=True))
        if reason.is_claim and earlier is None and not _contradicts(document, reason)
    ]


def appraise(
    document: CritDocument,
    reading: Reading,
    deeper: Mapping[int, Appraisal] | None = None,
    unread: Mapping[int, str] | None = None,
    source: int | None = None,
    rivals: Rivals = "printed",
) -> Appraisal:
    """Score a reading: marks out of ten become gamma and theta in [0, 1].

    Args:
        deeper: by a reason's index, its reading as a separate document; its score replaces gamma.
        unread: by a reason's index, why it was not read deeper.
        source: which of the document's sources was read.
        rivals: their weighting, see `gamma_of`.
    """
    deeper, unread = deeper or {}, unread or {}
    reasons = _points(document, reading.reasons, rival=False, deeper=deeper, unread=unread)
    against = _points(document, reading.rivals, rival=True, deeper={}, unread={})
    points = (*reasons, *against)
    gamma = gamma_of([point.weighed for point in points if point.repeats is None], rivals)
    notes = [gamma.note, RIVALS_CAPPED if gamma.capped else "", *_notes(document, reading, points)]
    notes += [_of_deeper(note) for below in deeper.values() for note in below.notes]
    return Appraisal(
        claim=document.claim or reading.claim,
        score=gamma.score,
        reasons=reasons,
        rivals=against,
        justification=reading.justification,
        reflection=reading.reflection,
        source=source,
        notes=tuple(dict.fromkeys(note for note in notes if note)),
    )


def _points(
    document: CritDocument,
    arguments: Sequence[Argument],
    *,
    rival: bool,
    deeper: Mapping[int, Appraisal],
    unread: Mapping[int, str],
) -> tuple[AppraisedReason, ...]:
    repeats = first_alike([argument.text for argument in arguments])
    points = []
    for place, (argument, earlier) in enumerate(zip(arguments, repeats, strict=True)):
        stated, contradicts = _share(argument.validity), _contradicts(document, argument)
        below = deeper.get(place)
        found = below.score if below is not None and below.score is not None else stated
        gamma = 0.0 if contradicts else found
        points.append(
            AppraisedReason(
                text=argument.text,
                weighed=WeightedReason(gamma, _share(argument.credibility), rival),
                stated=stated,
                is_claim=argument.is_claim,
                contradicts_facts=contradicts,
                repeats=earlier,
                deeper=below,
                unread=unread.get(place, ""),
                repairs=argument.repairs,
                why=argument.why,
            )
        )
    return tuple(points)


def _share(mark: float) -> float:
    return round(mark / 10.0, 12)  # 9.1 / 10 is 0.9099999999999999


def _of_deeper(note: str) -> str:
    return note if note == BUDGET_SPENT or note.startswith("deeper-") else f"deeper-{note}"


def _contradicts(document: CritDocument, argument: Argument) -> bool:
    return argument.contradicts_facts and bool(document.facts.strip())


def _notes(document: CritDocument, reading: Reading, points: Sequence[AppraisedReason]) -> list[str]:
    arguments = (*reading.reasons, *reading.rivals)
    marks = [mark for argument in arguments for mark in (argument.validity, argument.credibility)]
    found = {
        REPEATED_REASONS: any(point.repeats is not None for point in points),
        MARKS_REPAIRED: any(point.repairs for point in points),
        SCALE_DOUBTFUL: all(mark <= 1.0 for mark in marks) and any(0.0 < mark < 1.0 for mark in marks),
        NO_FACTS: any(argument.contradicts_facts and not _contradicts(document, argument) for argument in arguments),
        BUDGET_SPENT: any(point.unread == NO_BUDGET for point in points),
        DEEPER_FAILED: any(point.unread not in ("", TOO_DEEP, NO_BUDGET) for point in points),
    }
    return [note for note, holds in found.items() if holds]


__getattr__ = deprecated_names(__name__, Document="CritDocument")
