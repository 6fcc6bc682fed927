"""The payload of a verdict of the judge panel."""

from __future__ import annotations

from moot.protocols.events import EventData


class DimensionFigures(EventData):
    """The marks on one dimension: mean, median, and highest less lowest (`spread`; None with fewer than two marks)."""

    mean: float | None
    median: int | float | None
    spread: int | None


class PanelPayload(EventData):
    """Result of a panel on one reply; a missing score is in no figure but the counts. None is unknown.

    Attributes:
        rubric: its name.
        dimensions: by dimension, its figures.
        quality: mean Q of the marks.
        flag: share of the marks that flag the reply, in [0, 1].
        flagged: whether at least half of them do.
        judgments: marks that are there.
        missing: marks that are not; `abstentions` counts them by the kind of failure.
    """

    rubric: str
    dimensions: dict[str, DimensionFigures]
    quality: float | None
    flag: float | None
    flagged: bool | None
    judgments: int
    missing: int
    abstentions: dict[str, int]
