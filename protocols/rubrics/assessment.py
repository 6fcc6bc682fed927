"""The event `assessment`: how judges found one reply, as it lies in the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median

import msgspec

from moot.metrics.signal_divergences import FLAGGED

ASSESSMENT = "assessment"
"""The kind of the event."""


class MarkData(msgspec.Struct, frozen=True, kw_only=True, rename={"pass_index": "pass"}):
    """One judge's reading of one reply in one pass.

    `scores`, `flag` and `total` are None where `missing` says why; `flag` also under a rubric without a flag.
    """

    judge: str
    model: str = ""
    pass_index: int = 0
    scores: dict[str, int] | None = None
    flag: bool | None = None
    total: int | None = None
    missing: str = ""
    issues: str = ""
    reasoning: str = ""

    @property
    def why(self) -> str:
        """The kind of failure behind a missing mark; empty for one that is there."""
        return self.missing.partition(":")[0]


class AssessmentData(msgspec.Struct, frozen=True, kw_only=True):
    """What judges found of one reply; None is unknown. Only `reply` and `role` must be there.

    Attributes:
        reply: path of the judged reply.
        role: family of who spoke.
        domain: of the case; None or empty when the task does not say.
        rubric: its name.
        scales: each dimension's name with the lowest and the highest score, in the rubric's order (the record sorts the
            keys of mappings), and the flag's where the rubric has one; empty where the event does not say.
        passes_at: by dimension the lowest score that passes, where the rubric says one.
        judges: every mark, missing ones included.
        scores: by dimension, the mean over the marks.
        flag: share of the marks that flag the reply, in [0, 1].
        quality: mean Q over the marks, 0 and up.
        missing: how many marks are missing.
    """

    reply: str
    role: str
    domain: str | None = ""
    rubric: str = ""
    scales: tuple[tuple[str, int, int], ...] = ()
    passes_at: dict[str, int] = {}
    judges: tuple[MarkData, ...] = ()
    scores: dict[str, float | None] = {}
    flag: float | None = None
    quality: float | None = None
    missing: int = 0

    @property
    def ends(self) -> dict[str, tuple[int, int]]:
        """The lowest and the highest score by dimension, and of the flag where there is one."""
        return {name: (lowest, highest) for name, lowest, highest in self.scales}

    @property
    def dimensions(self) -> list[str]:
        """The names of the dimensions, in the rubric's order as far as it is known."""
        ordered = [name for name in self.ends if name in self.scores]
        return [*ordered, *(name for name in self.scores if name not in ordered)]

    @property
    def marks(self) -> tuple[MarkData, ...]:
        """Every mark, judge by judge and pass by pass, missing ones included."""
        return self.judges

    @property
    def given(self) -> list[dict[str, int]]:
        """The scores of every mark that is there."""
        return [mark.scores for mark in self.judges if mark.scores is not None]

    @property
    def medians(self) -> dict[str, float | None]:
        """By dimension the median over the marks; None when all are missing."""
        there = self.given
        found = {name: [scores[name] for scores in there if name in scores] for name in self.scores}
        return {name: median(scores) if scores else None for name, scores in found.items()}

    @property
    def flagged(self) -> bool | None:
        """Whether at least half of the marks (`FLAGGED`) flag the reply; None when that is unknown."""
        return None if self.flag is None else self.flag >= FLAGGED

    @property
    def abstentions(self) -> dict[str, int]:
        """How many marks are missing, by the kind of failure, most first."""
        return abstentions(self.judges)


def abstentions(marks: Iterable[MarkData]) -> dict[str, int]:
    """How many marks are missing, by the kind of failure, most first."""
    return dict(Counter(mark.why for mark in marks if mark.missing).most_common())


def read_assessment(data: object) -> AssessmentData | None:
    """An event's data; None when it is no assessment: a protocol may note what it likes."""
    try:
        return msgspec.convert(data, AssessmentData)
    except msgspec.ValidationError:
        return None
