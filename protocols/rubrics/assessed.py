"""The event `assessment`: how judges found one reply, as it lies in the record."""

from __future__ import annotations

import msgspec

ASSESSMENT = "assessment"
"""The kind of the event."""


class MarkData(msgspec.Struct, frozen=True, kw_only=True, rename={"pass_index": "pass"}):
    """One judge's reading of one reply in one pass; `scores`, `flag` and `total` are None where `missing` says why."""

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


def read_assessment(data: object) -> AssessmentData | None:
    """An event's data; None when it is no assessment: a protocol may note what it likes."""
    try:
        return msgspec.convert(data, AssessmentData)
    except msgspec.ValidationError:
        return None
