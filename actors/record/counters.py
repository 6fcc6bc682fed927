"""Metric counters of a record writer: each reply, round and verdict counts once, whatever is replayed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import groupby
from statistics import fmean
from typing import Any

import msgspec
import pyarrow as pa

from moot.actors.record.assessment_figures import read_figures
from moot.actors.record.debate_result import DebateResult
from moot.actors.telemetry.meter import (
    DEBATE_SECONDS,
    DEBATES_DONE,
    DEBATES_FAILED,
    JUDGE_DISAGREEMENT,
    ROUND_DISTANCE,
    ROUND_NATS,
    ROUND_RATIO,
    TURNS,
    Meter,
    round_label,
)
from moot.protocols.messages import Event, family_of
from moot.protocols.round_values import read_round_values
from moot.protocols.rubrics.events import ReplyAssessed

FAILURES = frozenset(
    {
        "ask_failed",
        "bug",
        "case_unfit",
        "deadline",
        "encoder_failed",
        "invalid_case",
        "path_reused",
        "quorum_failed",
        "replay_diverged",
    }
)
"""Kinds of failure with a label of their own; others, such as errors of users' protocols, count as `OTHER`."""

OTHER = "other"

ROUND_METRICS = {
    **dict.fromkeys(("jsd", "generalised_jsd", "kl", "mi", "ce", "entropy", "mixture_entropy"), ROUND_NATS),
    **dict.fromkeys(("kappa", "crit", "gamma", "nmi", "m"), ROUND_RATIO),
    **dict.fromkeys(("d", "wd"), ROUND_DISTANCE),
}
"""Metric of each exported round measure. `information_gain` may be negative, which no histogram counts, and `changed`
is a small whole number, of which quantiles say nothing."""

_INSIDE = frozenset({"invalid", "cut"})
"""Outcomes of replies that do not end their ask."""


class RecordCounters:
    """Counters of the rows of a record.

    Args:
        meter: receives the numbers.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._ended: deque[DebateResult] = deque()
        self._counted = 0
        self._families: set[str] = set()
        meter.add(DEBATES_DONE, 0.0)
        for failure in (*sorted(FAILURES), OTHER):
            meter.add(DEBATES_FAILED, 0.0, failure)

    def add_replies(self, batch: pa.RecordBatch) -> None:
        """Count appended rows of the stream `replies`."""
        rows = zip(batch["role"].to_pylist(), batch["outcome"].to_pylist(), strict=True)
        for (role, outcome), turns in Counter(rows).items():
            family = family_of(role or "")
            if family not in self._families:
                self._families.add(family)
                self._meter.add(TURNS, 0.0, family, "failed")
            if outcome not in _INSIDE:
                self._meter.add(TURNS, turns, family, outcome or "")

    def add_event(self, event: Event) -> None:
        """Count an appended event."""
        if (noted := read_round_values(event.kind, event.data)) is not None:
            for measure, value in noted.values.items():
                if value is not None and measure in ROUND_METRICS:
                    self._meter.observe(ROUND_METRICS[measure], value, measure, round_label(noted.round))
        for disagreement in judge_disagreements(event):
            self._meter.observe(JUDGE_DISAGREEMENT, disagreement)

    def end(self, result: DebateResult) -> None:
        """Note an appended verdict; it counts once it is durable."""
        self._ended.append(result)

    @property
    def ended(self) -> int:
        """Number of noted verdicts."""
        return self._counted + len(self._ended)

    def settle(self, ended: int) -> None:
        """Count the first `ended` verdicts, which are durable now; each counts once."""
        while self._counted < ended:
            result = self._ended.popleft()
            self._counted += 1
            if result.failure:
                self._meter.add(DEBATES_FAILED, 1.0, result.failure if result.failure in FAILURES else OTHER)
            else:
                self._meter.add(DEBATES_DONE, 1.0)
            self._meter.observe(DEBATE_SECONDS, result.wall_s)


class _Judged(msgspec.Struct):
    judge: str
    score: float | None = None


class _Candidate(msgspec.Struct):
    judgments: list[_Judged] = []


class _Judging(msgspec.Struct):
    candidates: list[_Candidate] = []


class _Crit(msgspec.Struct):
    by_judge: dict[str, float | None] = {}


def judge_disagreements(event: Event) -> list[float]:
    """Range of the judges' mean scores for each reply of an event, in [0, 1]: the highest less the lowest.

    A reply scored by fewer than two judges has none. Only the events `judging`, `crit` and `assessment` are read; data
    of these names in another form, from a user's protocol, is skipped.
    """
    try:
        if event.kind == "judging":
            candidates = msgspec.convert(event.data, _Judging).candidates
            return _spreads(
                _by_judge((judgment.judge, judgment.score) for judgment in one.judgments) for one in candidates
            )
        if event.kind == "crit":
            return _spreads([_by_judge(msgspec.convert(event.data, _Crit).by_judge.items())])
    except msgspec.ValidationError:
        return []
    return _spreads([_marks(event.data)]) if event.kind == ReplyAssessed.kind else []


def _marks(data: dict[str, Any]) -> dict[str, float]:
    """Each judge's mean score by the rubric's scales, from 0 for the lowest to 1 for the highest."""
    assessment = read_figures(data)
    if assessment is None:
        return {}
    scales = [(name, low, high) for name, low, high in assessment.scales if low < high]
    found = []
    for mark in assessment.judges:
        scores = mark.scores or {}
        shares = [(scores[name] - low) / (high - low) for name, low, high in scales if name in scores]
        found.append((mark.judge, fmean(shares) if shares else None))
    return _by_judge(found)


def _by_judge(scores: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    present = sorted((judge, score) for judge, score in scores if score is not None)
    return {judge: fmean(score for _, score in own) for judge, own in groupby(present, lambda pair: pair[0])}


def _spreads(replies: Iterable[Mapping[str, float]]) -> list[float]:
    return [max(scores.values()) - min(scores.values()) for scores in replies if len(scores) > 1]
