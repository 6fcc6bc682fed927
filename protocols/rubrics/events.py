"""The event of a panel: how judges found one reply under a rubric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median
from typing import Annotated, ClassVar

from pydantic import Field

from moot.metrics.signal_divergences import FLAGGED
from moot.protocols.events import DebateEvent, EventData


class JudgeMark(EventData):
    """One judge's marks for one reply in one pass.

    `scores`, `flag` and `total` are None where `missing` gives a reason; `flag` also under a rubric without a flag.

    Attributes:
        judge: the judge's full role name.
        model: the judge's model; empty if the mark is missing.
        pass_index: number of the pass, from 0; `pass` in the record.
        scores: score by dimension, on the rubric's scale.
        flag: whether the judge found a severe failure.
        total: Q, the sum of the scores; 0 if flagged.
        missing: kind and message of the failure; empty if the mark is not missing.
        issues, reasoning: the judge's texts.
    """

    judge: str
    model: str = ""
    pass_index: int = Field(default=0, validation_alias="pass", serialization_alias="pass")
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


class ReplyAssessed(DebateEvent):
    """The judges' results for one reply, at `assessment/PATH` of the reply; None means unknown.

    Attributes:
        reply: path of the judged reply.
        role: role family of the speaker.
        domain: domain of the case; None or empty if the task does not name one.
        rubric: name of the rubric.
        scales: each dimension's name with the lowest and the highest score, in the rubric's order (the record sorts the
            keys of mappings), and the flag's if the rubric has one; empty if the event does not say.
        passes_at: by dimension, the lowest score that passes, if the rubric states one.
        judges: every mark, including missing ones.
        scores: by dimension, the mean over the marks.
        flag: share of the marks that flag the reply, in [0, 1].
        quality: mean Q over the marks, at least 0.
        missing: number of missing marks.
    """

    kind: ClassVar[str] = "assessment"

    reply: str
    role: str
    domain: str | None = ""
    rubric: str = ""
    scales: list[Annotated[tuple[str, int, int], Field(strict=False)]] = Field(default_factory=list)
    passes_at: dict[str, int] = Field(default_factory=dict)
    judges: list[JudgeMark] = Field(default_factory=list)
    scores: dict[str, float | None] = Field(default_factory=dict)
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
    def marks(self) -> list[JudgeMark]:
        """Every mark, judge by judge and pass by pass, missing ones included."""
        return self.judges

    @property
    def given(self) -> list[dict[str, int]]:
        """The scores of every mark that is there."""
        return [mark.scores for mark in self.judges if mark.scores is not None]

    @property
    def medians(self) -> dict[str, float | None]:
        """Median over the marks by dimension; None when all are missing."""
        there = self.given
        found = {name: [scores[name] for scores in there if name in scores] for name in self.scores}
        return {name: median(scores) if scores else None for name, scores in found.items()}

    @property
    def flagged(self) -> bool | None:
        """Whether at least half of the marks (`FLAGGED`) flag the reply; None when that is unknown."""
        return None if self.flag is None else self.flag >= FLAGGED

    @property
    def abstentions(self) -> dict[str, int]:
        """Number of missing marks by kind of failure, most first."""
        return abstentions(self.judges)


def abstentions(marks: Iterable[JudgeMark]) -> dict[str, int]:
    """Number of missing marks by kind of failure, most first."""
    return dict(Counter(mark.why for mark in marks if mark.missing).most_common())
