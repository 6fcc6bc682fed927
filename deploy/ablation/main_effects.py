"""What a value of one key is worth, the mean over the values of all the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pydantic import BaseModel, ConfigDict

from moot.deploy.ablation.cases import CellCases, scored_by_all
from moot.deploy.ablation.grid import Axis, Cell
from moot.deploy.ablation.inference import bca
from moot.deploy.reading.text import Interval


class MainEffect(BaseModel):
    """A value of a key; every cell that has it counts alike, and a run that serves several of these counts once.

    Attributes:
        n: cases that every cell of the grid has scored; accuracy and difference are over these.
        accuracy: mean over the cells with this value; None for n = 0.
        difference: of that accuracy to the one of the baseline's value; None for that itself, and for n = 0.
        interval: BCa bootstrap over the cases, 95 %; None where the difference is.
        tokens_per_case: mean over the runs; None when one of them is unknown.
    """

    model_config = ConfigDict(frozen=True)

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
    """Every value of every key.

    Args:
        axes: what varies.
        grid: all cells.
        runs: by a cell's name, its run's: another cell's, where that serves both.
        read: the cases by run.
        tokens: per case, by run.
        baseline: whose values the others are compared with.
    """
    shared = scored_by_all(read.values())
    found = []
    for axis in axes:
        having = {value.name: _runs_with(axis.key, value.name, grid, runs) for value in axis.values}
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
                    interval=bca(gains),
                    tokens_per_case=fmean(known) if len(known) == len(costs) else None,
                )
            )
    return found


def _runs_with(key: str, value: str, grid: Sequence[Cell], runs: Mapping[str, str]) -> list[str]:
    """The runs of the cells with this value, each once."""
    return list(dict.fromkeys(runs[cell.name] for cell in grid if cell.values[key].name == value))


def _right(cells: Sequence[CellCases], shared: Sequence[str]) -> list[float]:
    """By case, the share of these runs that are right."""
    return [fmean(bool(cell.right(case_id)) for cell in cells) for case_id in shared]
