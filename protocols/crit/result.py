"""Result of a panel on one document: the mean of its judges' scores, and their advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from moot.protocols.crit.appraisal import Appraisal, AppraisedReason
from moot.protocols.crit.events import CritJudged, CritReading
from moot.protocols.crit.repeats import first_alike
from moot.protocols.crit.scoring import out_of_ten
from moot.protocols.crit.settings import CritSettings

EMPTY_DOCUMENT = "empty-document"
"""Note: the text was blank, so no judge was asked."""


@dataclass(frozen=True, slots=True)
class JudgeAppraisal:
    """Result of one judge.

    Attributes:
        appraisal: its reading; None if it failed.
        missing: why it failed; empty if it did not.
        calls: number of requests, including deeper readings.
        depth: depth of its deepest reading: 0 without deeper readings.
    """

    appraisal: Appraisal | None
    missing: str = ""
    calls: int = 1
    depth: int = 0


@dataclass(frozen=True, slots=True)
class CritResult:
    """Result of a panel on one document.

    Attributes:
        score: mean Gamma over the judges that gave one, in [0, 1]; None if none did.
        by_judge: each judge's Gamma; None if it gave none.
        missing: failed judges, with reasons. A judge whose reading has no score is not among them; see `notes`.
        weak: texts of the weak reasons, the weakest first, see `CritSettings`; without those in `contradicted`.
        contradicted: texts of the reasons that contradict the given facts, by any judge.
        notes: caveats of the score, by any judge.
        heard: all readings of the judges.
    """

    score: float | None
    by_judge: Mapping[str, float | None]
    missing: Mapping[str, str] = field(default_factory=dict)
    weak: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    heard: Mapping[str, JudgeAppraisal] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Displayed score, e.g. `7.5/10`, or `unknown`."""
        return out_of_ten(self.score)

    def record(self) -> dict[str, Any]:
        """Data of the event."""
        return self.event("").as_event().data

    def event(self, path: str) -> CritJudged:
        """Event of a reading at a path."""
        return CritJudged(
            score=self.score,
            by_judge=dict(self.by_judge),
            missing=dict(self.missing),
            weak=list(self.weak),
            contradicted=list(self.contradicted),
            notes=list(self.notes),
            calls=sum(heard.calls for heard in self.heard.values()),
            depth=max((heard.depth for heard in self.heard.values()), default=0),
            judges={judge: _heard_record(heard) for judge, heard in self.heard.items()},
            path=path,
        )


def combine(heard: Mapping[str, JudgeAppraisal], settings: CritSettings) -> CritResult:
    """Combine the judges' results; a judge without a score is excluded from the mean, never counted as 0."""
    read = [one.appraisal for one in heard.values() if one.appraisal is not None]
    scores = [appraisal.score for appraisal in read if appraisal.score is not None]
    counted = [reason for appraisal in read for reason in appraisal.counted]
    contradicting, others = _contradicting_and_others(counted)
    weak = [group for group in others if fmean(reason.weighed.gamma for reason in group) < settings.weak_below]
    return CritResult(
        score=fmean(scores) if scores else None,
        by_judge={judge: one.appraisal.score if one.appraisal else None for judge, one in heard.items()},
        missing={judge: one.missing for judge, one in heard.items() if one.appraisal is None},
        weak=tuple(group[0].text for group in weak[: settings.weak_points]),
        contradicted=tuple(group[0].text for group in contradicting),
        notes=tuple(dict.fromkeys(note for appraisal in read for note in appraisal.notes)),
        heard=heard,
    )


def unread(panel: Sequence[str]) -> CritResult:
    """Result of a blank document: no judge was asked, and the score is unknown."""
    return CritResult(None, dict.fromkeys(panel), notes=(EMPTY_DOCUMENT,))


def _contradicting_and_others(
    counted: Sequence[AppraisedReason],
) -> tuple[list[list[AppraisedReason]], list[list[AppraisedReason]]]:
    """Reasons of all judges, those that repeat each other in one group: groups in which a judge calls one contrary to
    the facts, in the judges' order, and the others, the weakest first.
    """
    contradicting = [reason for reason in counted if reason.contradicts_facts]
    others = sorted((one for one in counted if not one.contradicts_facts), key=lambda one: one.strength)
    ordered = [*contradicting, *others]
    groups: dict[int, list[AppraisedReason]] = {}
    for place, earlier in enumerate(first_alike([reason.text for reason in ordered])):
        groups.setdefault(place if earlier is None else earlier, []).append(ordered[place])
    found = [(place < len(contradicting), group) for place, group in groups.items()]
    return [group for contrary, group in found if contrary], [group for contrary, group in found if not contrary]


def _heard_record(heard: JudgeAppraisal) -> CritReading:
    read = heard.appraisal.record() if heard.appraisal else CritReading()
    return read.model_copy(update={"missing": heard.missing, "calls": heard.calls, "depth": heard.depth})
