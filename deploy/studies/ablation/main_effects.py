"""Main effects of a grid: the accuracy for each value of each key, averaged over the cells with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.text import Interval
from moot.deploy.studies.ablation.cases import CellCases, groups_of, scored_by_all
from moot.deploy.studies.ablation.grid import Axis, Cell
from moot.deploy.studies.ablation.means import interval_of_mean


class MainEffect(FrozenModel):
    """Main effect of a value of a key. Cells have equal weight; a run shared by several cells counts once.

    Attributes:
        n: number of cases scored in every cell of the grid, over which accuracy and difference are computed.
        accuracy: mean over the cells with this value; None for n = 0.
        difference: accuracy minus that of the baseline value; None for the baseline value, and for n = 0.
        interval: 95 % interval of the difference, by Student's t over groups of cases; None where it is undefined.
        tokens_per_case: mean over the runs; None if one is unknown.
    """

    key: str
    value: str
    n: int
    accuracy: float | None
    difference: float | None
    interval: Interval | None
    tokens_per_case: float | None


def main_effects(
    axes: Sequence[Axis],
    grid: Sequence[Cell],
    runs: Mapping[str, str],
    read: Mapping[str, CellCases],
    tokens: Mapping[str, float | None],
    baseline: Cell,
) -> list[MainEffect]:
    """Main effect of every value of every key.

    Args:
        axes: the varied keys.
        grid: all cells.
        runs: name of each cell's run, which may be that of another cell.
        read: cases by run.
        tokens: tokens per case by run.
        baseline: cell with the baseline values.
    """
    shared, groups = scored_by_all(read.values()), groups_of(read.values())
    effects = []
    for axis in axes:
        runs_by_value = {value.name: dict[str, None]() for value in axis.values}
        for cell in grid:
            runs_by_value[cell.values[axis.key].name][runs[cell.name]] = None
        base = _right([read[run] for run in runs_by_value[baseline.values[axis.key].name]], shared)
        for value in axis.values:
            right = _right([read[run] for run in runs_by_value[value.name]], shared)
            costs = [tokens[run] for run in runs_by_value[value.name]]
            known = [cost for cost in costs if cost is not None]
            is_baseline = value.name == baseline.values[axis.key].name
            gains = {} if is_baseline else {i: right[i] - base[i] for i in shared}
            effects.append(
                MainEffect(
                    key=axis.key,
                    value=value.text,
                    n=len(shared),
                    accuracy=fmean(right.values()) if right else None,
                    difference=fmean(gains.values()) if gains else None,
                    interval=interval_of_mean(gains, groups, -1.0, 1.0),
                    tokens_per_case=fmean(known) if len(known) == len(costs) else None,
                )
            )
    return effects


def _right(cells: Sequence[CellCases], shared: Sequence[str]) -> dict[str, float]:
    """Proportion of the runs with a right verdict, by case."""
    return {case_id: fmean(bool(cell.right(case_id)) for cell in cells) for case_id in shared}
