"""The events of a debate of distributions, as they must look to be shown as such."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from moot.deploy.reading.frozen import Shape

Probabilities = dict[str, float | None]
Scores = dict[str, float | None]


class RoundData(Shape):
    """A `round` with distributions; its other numbers are in the trace."""

    round: int
    distributions: dict[str, Probabilities]
    moves: Scores | None = None
    silent: list[str] = Field(default_factory=list)
    swapped: bool = False
    kl_floored: int | None = None
    agreement_words: float | None = None
    round_score: float | None = None


class Change(Shape):
    """Something that was mended in a distribution; label and value are a model's."""

    what: str
    label: Any = None
    to: Any = None
    value: Any = None


class DistributionData(Shape):
    """A turn's `distribution`."""

    cleaned: Probabilities
    changes: list[Change] = Field(default_factory=list)


class Point(Shape):
    """A reason or a rival; `s` is what it says of the claim, `repeats` the earlier one that it repeats."""

    text: str
    gamma: float
    theta: float
    s: float
    contradicts_facts: bool = False
    repeats: int | None = None
    deeper: ReadByJudge | None = None


class ReadByJudge(Shape):
    """What one judge found; nothing when it is missing."""

    reasons: list[Point] = Field(default_factory=list)
    rivals: list[Point] = Field(default_factory=list)


class CritData(Shape):
    """What the judges made of a turn."""

    score: float | None
    by_judge: Scores
    missing: dict[str, str] = Field(default_factory=dict)
    weak: list[str] = Field(default_factory=list)
    contradicted: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    judges: dict[str, ReadByJudge] = Field(default_factory=dict)


class QualityGateData(Shape):
    """A turn's `quality-gate`; records from before `opponents` have none."""

    on: bool
    threshold: float | None
    crit: float | None
    passed: bool
    why: str
    opponents: list[str] = Field(default_factory=list)


class ContentiousnessData(Shape):
    """A turn of the dial, for the next round."""

    before: float | None
    after: float | None
    schedule: str
    why: str


class StopData(Shape):
    """Why the debate ended."""

    reason: str
    round: int


class ConsensusData(Shape):
    """What the sides say together."""

    weights: Scores
    weights_from: str
    distribution: Probabilities
    entropy: float | None
    confidence: float | None


class FollowUpsData(Shape):
    """What to find out next."""

    questions: list[str]
    tests: list[str]


class ConsensusPayload(Shape):
    """A verdict that is a consensus, as far as no event says it."""

    crit_mean: float | None = None
    uncertainty: float | None = None
    mixture_entropy_first: float | None = None
    mixture_entropy_last: float | None = None
