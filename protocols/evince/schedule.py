"""Contentiousness schedules: the level of the next round, with the reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from moot.protocols.evince.settings import EvinceContentiousnessSettings, Schedule


@dataclass(frozen=True, slots=True)
class RoundSignals:
    """Inputs of a schedule after a round.

    Attributes:
        total_variation: between the sides, in [0, 1]; the mean over the pairs.
        jensen_shannon: likewise, in nats, in [0, ln 2].
        gain: fall in entropy of the mixture, as a share of its greatest entropy, in [-1, 1]; None for the first round.
        quality: mean CRIT score, in [0, 1]; None if unknown.
        uncertainty: entropy of the mixture over its greatest, in [0, 1].
    """

    total_variation: float
    jensen_shannon: float
    gain: float | None
    quality: float | None
    uncertainty: float

    @property
    def disagreement(self) -> float:
        """`1 - (1 - TV)(1 - JSD / ln 2)`, in [0, 1]: 0 for equal distributions, 1 for disjoint ones."""
        return 1.0 - (1.0 - self.total_variation) * (1.0 - min(1.0, self.jensen_shannon / math.log(2.0)))

    @property
    def score(self) -> float:
        """The round's score, in [0, 1]: the mean of disagreement, missing gain `(1 - gain) / 2` and missing quality
        `1 - quality`, over the known ones. A high score means that there is more to argue about.
        """
        parts = [self.disagreement]
        if self.gain is not None:
            parts.append((1.0 - self.gain) / 2.0)
        if self.quality is not None:
            parts.append(1.0 - self.quality)
        return fmean(parts)


@dataclass(frozen=True, slots=True)
class NextLevel:
    """Level of the next round, with the reason as text; None if prompts state no level."""

    level: float | None
    why: str


NEAR_ZERO = 0.01
"""Level at which the exponential schedule ends with a lower floor."""


def decay_rate(kappa: EvinceContentiousnessSettings, max_rounds: int) -> float:
    """Lambda of the exponential schedule, per round: `ln(start / floor) / max_rounds`.

    >>> round(decay_rate(EvinceContentiousnessSettings(start=0.9, floor=0.3), 3), 3)
    0.366
    """
    return math.log(max(kappa.start, NEAR_ZERO) / max(kappa.floor, NEAR_ZERO)) / max_rounds


def first_level(schedule: Schedule, kappa: EvinceContentiousnessSettings) -> float | None:
    """The level of the opening exchange; None for schedules without contentiousness."""
    return None if schedule in ("none", "ensemble") else kappa.start


def next_level(
    schedule: Schedule,
    kappa: EvinceContentiousnessSettings,
    *,
    done: int,
    max_rounds: int,
    level: float | None,
    signals: RoundSignals,
) -> NextLevel:
    """The level of round `done + 1`.

    `random` is drawn by the caller, from the case's seed.

    - `fixed`: the start. `linear`: evenly from start to floor over the rounds.
    - `exponential`: start * e ** (-lambda * round) (the source's section 7.4.5, which gives no lambda), with
      lambda = ln(start / floor) / max_rounds. Thus it begins and ends as `linear` does, and is below it in between. It
      cannot reach 0: with a floor below `NEAR_ZERO`, it ends there.
    - `adaptive`: constant while the disagreement is at least `far`, else multiplied by `1/2 + score`, so that it falls
      as the sides converge, gain certainty and argue better. A score above 1/2 raises it, but only while
      the mixture's normalised entropy is at least `uncertain`: sides that agree on uncertainty shall explore further.

    Args:
        done: completed rounds after the opening exchange.
        max_rounds: maximum number of these.
        level: the level of the last round.
        signals: of the last round.
    """
    if schedule in ("none", "ensemble") or level is None:
        return NextLevel(None, "no dial")
    if schedule == "fixed":
        return NextLevel(kappa.start, "fixed")
    if schedule == "linear":
        share = min(1.0, (done + 1) / max_rounds)
        return NextLevel(kappa.start + (kappa.floor - kappa.start) * share, "linear")
    if schedule == "exponential":
        level = kappa.start * math.exp(-decay_rate(kappa, max_rounds) * (done + 1))
        return NextLevel(max(kappa.floor, level), "exponential")
    return _adapted(kappa, level, signals)


def _adapted(kappa: EvinceContentiousnessSettings, level: float, signals: RoundSignals) -> NextLevel:
    if signals.disagreement >= kappa.far:
        return NextLevel(level, "held: the sides are far apart")
    factor = 0.5 + signals.score
    if factor <= 1.0:
        cooled = max(kappa.floor, level * factor)
        return NextLevel(cooled, "cooled: the sides come together" if cooled < level else "held: at the floor")
    if signals.uncertainty < kappa.uncertain:
        return NextLevel(level, "held: nothing gained, but the mixture is certain enough")
    raised = min(max(kappa.start, level), level * factor)
    return NextLevel(raised, "raised: the sides agree on not knowing" if raised > level else "held: at the start")
