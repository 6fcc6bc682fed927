"""Effect of contentiousness over a run: means of measures by kappa, and whether kappa caused the differences.

Most schedules change kappa with the rounds or with the debate itself, so that an association with kappa need not be
caused by it. Where kappa was drawn at random (`schedule=random`), it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moot.deploy.results.figures.round_trace import number_or_none
from moot.deploy.results.record import RunRecord
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.report.render import banner
from moot.deploy.results.stats import (
    LEAST_CASES,
    LEVEL,
    GroupOf,
    MeanOverCases,
    interval_words,
    mean_over_cases,
    ratio_interval,
)
from moot.deploy.results.text import number, signed
from moot.protocols.errors import ConfigError
from moot.protocols.events import ContentiousnessSet, RoundFigures

MEASURES = {
    "entropy": "entropy of the side that answers, nat",
    "jsd": "JSD between the sides, nat",
    "agreement_words": "agreement language, 0 to 1",
}
"""Measures and their names."""

_MOST_LEVELS = 10
_SECOND = "agent/1"
"""Side that answers the opener, where the record does not state the order of speakers."""
_RANDOM = "random"


class LevelEffect(FrozenModel):
    """Debates at one level of contentiousness.

    Attributes:
        kappa: the level, or the middle of a tenth where levels were binned.
        rounds: number of rounds at that level.
        measured: by key of `MEASURES`, those with a value in any round of the run.
    """

    kappa: float
    rounds: int
    measured: dict[str, MeanOverCases]


class ContentiousnessSlope(FrozenModel):
    """Slope of a measure over kappa, among rounds of equal number.

    Attributes:
        per_kappa: change from kappa 0 to 1, by least squares around each round's own means; None when unknown.
        low, high: simultaneous 95 % interval over groups of cases, for all slopes together.
        cases: with at least one round that other cases had at another kappa.
    """

    per_kappa: float | None
    low: float | None
    high: float | None
    cases: int

    @property
    def moves(self) -> bool | None:
        """Whether the interval excludes 0; None without one."""
        return None if self.low is None or self.high is None else self.low > 0.0 or self.high < 0.0


class ContentiousnessEffect(FrozenModel):
    """Effect of kappa in a run.

    Attributes:
        schedules: names from the events.
        binned: whether levels are binned to tenths, because a schedule has too many.
        levels: in ascending order.
        slopes: by the same keys; empty unless kappa was drawn at random.
        randomised: whether kappa was drawn at random in every debate.
        moves: whether any measure depends on kappa; None when unknown.
    """

    schema_version: int
    run: str
    simulated: bool
    schedules: list[str]
    binned: bool
    levels: list[LevelEffect]
    slopes: dict[str, ContentiousnessSlope]
    randomised: bool
    moves: bool | None


class _Round(NamedTuple):
    case_id: str
    number: int
    kappa: float
    values: Mapping[str, float | None]


def contentiousness_effect(folder: str | Path) -> ContentiousnessEffect:
    """Measures the effect in a run, finished or not; the attempts that count are those of `counted_rows`.

    The opening exchange is excluded, because the first side has no level there, and so is a side that failed to speak.

    Raises:
        ConfigError: no round of the run states a kappa, or none has any of the measures.
        RecordError: the folder has no run, or it cannot be read.
    """
    record = RunRecord(folder)
    facts, figures = record.info, record.counted_events(RoundFigures)
    rounds = [found for place, each in figures if (found := _round(place.case_id, each)) is not None]
    if not rounds:
        raise ConfigError(f"{facts.name}: no round states a kappa: this protocol or schedule has no contentiousness")
    keys = [key for key in MEASURES if any(each.values[key] is not None for each in rounds)]
    if not keys:
        raise ConfigError(f"{facts.name}: rounds state a kappa, but have no distributions that it could have changed")
    group_of = record.references.group
    levels, binned = _levels(rounds, keys, group_of)
    schedules = sorted({each.schedule for _, each in record.counted_events(ContentiousnessSet)})
    randomised = schedules == [_RANDOM]
    slopes = {key: _slope(rounds, key, len(keys), group_of) for key in keys} if randomised else {}
    known = [slope.moves for slope in slopes.values() if slope.moves is not None]
    return ContentiousnessEffect(
        schema_version=facts.schema_version,
        run=facts.name,
        simulated=facts.simulated,
        schedules=schedules,
        binned=binned,
        levels=levels,
        slopes=slopes,
        randomised=randomised,
        moves=any(known) if known else None,
    )


def _round(case_id: str, figures: RoundFigures) -> _Round | None:
    kappa = number_or_none(figures.kappa)
    if kappa is None or figures.round == 0:
        return None
    failed, order = figures.failed or (), figures.order or ()
    second = order[1] if len(order) > 1 else _SECOND
    answering = figures.entropy.get(second) if isinstance(figures.entropy, dict) else None
    return _Round(
        case_id,
        figures.round,
        kappa,
        {
            "entropy": None if f"{figures.path}/{second}" in failed else answering,
            "jsd": None if failed else number_or_none(figures.jsd),
            "agreement_words": figures.agreement_words,
        },
    )


def _levels(rounds: Sequence[_Round], keys: Sequence[str], group_of: GroupOf) -> tuple[list[LevelEffect], bool]:
    """The schedule's own levels, or tenths if there are more than ten."""
    binned = len({round(each.kappa, 2) for each in rounds}) > _MOST_LEVELS
    found: dict[float, list[_Round]] = defaultdict(list)
    for each in rounds:
        found[round(each.kappa, 1 if binned else 2)].append(each)
    return [_level(kappa, several, keys, group_of) for kappa, several in sorted(found.items())], binned


def _level(kappa: float, rounds: Sequence[_Round], keys: Sequence[str], group_of: GroupOf) -> LevelEffect:
    measured = {key: mean_over_cases([(each.case_id, each.values[key]) for each in rounds], group_of) for key in keys}
    return LevelEffect(kappa=kappa, rounds=len(rounds), measured=measured)


def _slope(rounds: Sequence[_Round], key: str, tested: int, group_of: GroupOf) -> ContentiousnessSlope:
    """Slope among rounds of equal number, because debates change from round to round whatever kappa is."""
    known = [each for each in rounds if each.values[key] is not None]
    parts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for round_number in {each.number for each in known}:
        same = [each for each in known if each.number == round_number]
        levels = np.array([each.kappa for each in same])
        measured = np.array([each.values[key] for each in same], dtype=np.float64)
        for of, kappa, value in zip(same, levels - levels.mean(), measured - measured.mean(), strict=True):
            parts[of.case_id][0] += float(kappa * value)
            parts[of.case_id][1] += float(kappa * kappa)
    varied = {case_id: part for case_id, part in parts.items() if part[1] > 0.0}
    if not varied:
        return ContentiousnessSlope(per_kappa=None, low=None, high=None, cases=0)
    by_group: dict[str, list[list[float]]] = defaultdict(list)
    for case_id, part in varied.items():
        by_group[group_of(case_id)].append(part)
    products, squares = np.array([np.sum(several, axis=0) for several in by_group.values()]).T
    low, high = ratio_interval(products, squares, 1.0 - (1.0 - LEVEL) / tested)
    return ContentiousnessSlope(per_kappa=float(products.sum() / squares.sum()), low=low, high=high, cases=len(varied))


_CANNOT_TELL = (
    "This run cannot show whether the models react to contentiousness: its schedule changes kappa with the rounds and "
    "the debates, which change by themselves. A run with --set schedule=random can (EVINCE), or a comparison of fixed "
    "levels (moot ablate)."
)
_ONE_LEVEL = (
    "One level cannot show whether the models react to contentiousness: compare several, as with moot ablate "
    "--set schedule=fixed --over kappa.start=0.9,0.5,0.1."
)


def conclusion(found: ContentiousnessEffect) -> str:
    """Sentence on whether any measure depends on kappa."""
    if not found.randomised:
        return _ONE_LEVEL if len(found.levels) == 1 else _CANNOT_TELL
    if found.moves is None:
        return (
            f"Whether the models react to contentiousness is unknown: fewer than {LEAST_CASES} groups of cases can be "
            "compared."
        )
    if found.moves:
        moved = {MEASURES[key].partition(",")[0]: slope for key, slope in found.slopes.items() if slope.moves}
        by = "; ".join(
            f"{name} {signed(slope.per_kappa)} ({interval_words(slope.low, slope.high)})"
            for name, slope in moved.items()
        )
        return f"The debates react to kappa, which was drawn at random: {by} from kappa 0 to 1."
    return "No reaction to contentiousness is visible: the interval of every slope over kappa includes 0."


def _table_rows(found: ContentiousnessEffect) -> list[list[str]]:
    rows = []
    for key in found.levels[0].measured:
        for i, level in enumerate(found.levels):
            at = level.measured[key]
            name, kappa = MEASURES[key] if i == 0 else "", number(level.kappa, 2)
            rows.append([name, kappa, number(at.mean), interval_words(at.low, at.high), f"{at.cases:,}"])
        if (slope := found.slopes.get(key)) is not None:
            rows.append(
                ["", "slope", number(slope.per_kappa), interval_words(slope.low, slope.high), f"{slope.cases:,}"]
            )
    return rows


def contentiousness_blocks(found: ContentiousnessEffect) -> list[Block]:
    """Report of the effect: means, slopes, and the conclusion."""
    schedule = f", schedule {', '.join(found.schedules)}" if found.schedules else ""
    slopes = " and slopes among equal rounds" if found.slopes else ""
    note = Note(f"means by kappa{slopes}, with intervals over groups of cases{schedule}")
    head = [*banner(found.simulated), Heading(f"Effect of kappa: {found.run}", 1), note]
    header = ("", "kappa, to 0.1" if found.binned else "kappa", "mean", "95 % interval", "cases")
    return [*head, Table("", header, _table_rows(found)), Note(conclusion(found))]
