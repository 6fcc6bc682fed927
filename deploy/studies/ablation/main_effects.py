"""Main effects of a grid: the accuracy with each value of each key, over all cells that have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.text import Interval
from moot.deploy.studies.ablation.cases import CellCases, scored_by_all
from moot.deploy.studies.ablation.grid import Axis, Cell
from moot.deploy.studies.ablation.means import bca_of_mean


class MainEffect(FrozenModel):
    """Main effect of a value of a key; all cells with it count equally, and a run shared by several counts once.

    Attributes:
        n: cases scored in every cell of the grid; accuracy and difference are over these.
        accuracy: mean over the cells with this value; None for n = 0.
        difference: of that accuracy from the baseline value's; None for the baseline itself, and for n = 0.
        interval: BCa bootstrap over the cases, 95 %; None where the difference is.
        tokens_per_case: mean over the runs; None when one of them is unknown.
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
    """Main effects of every value of every key.

    Args:
        axes: the varied keys.
        grid: all cells.
        runs: name of each cell's run: another cell's, where it is shared.
        read: the cases by run.
        tokens: per case, by run.
        baseline: the cell with the baseline values.
    """
    shared = scored_by_all(read.values())
    found = []
    for axis in axes:
        having = {value.name: dict[str, None]() for value in axis.values}
        for cell in grid:
            having[cell.values[axis.key].name][runs[cell.name]] = None
        base = _right([read[run] for run in having[baseline.values[axis.key].name]], shared)
        for value in axis.values:
            right = _right([read[run] for run in having[value.name]], shared)
            costs = [tokens[run] for run in having[value.name]]
            known = [cost for cost in costs if cost is not None]
            itself = value.name == baseline.values[axis.key].name
            gains = [] if itself else [one - other for one, other in zip(right, base, strict=True)]
            found.append(
                MainEffect(
                    key=axis.key,
                    value=value.text,
                    n=len(shared),
                    accuracy=fmean(right) if right else None,
                    difference=fmean(gains) if gains else None,
                    interval=bca_of_mean(gains),
                    tokens_per_case=fmean(known) if len(known) == len(costs) else None,
                )
            )
    return found


def _right(cells: Sequence[CellCases], shared: Sequence[str]) -> list[float]:
    """Share of these runs that are right, by case."""
    return [fmean(bool(cell.right(case_id)) for cell in cells) for case_id in shared]
