"""Ablation: one run for every combination of settings over the same cases, and the effect of each setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from moot.actors.record.folder import RunFolder
from moot.deploy.results.run_info import read_run_info
from moot.deploy.results.text import cases
from moot.deploy.runs.interruption import run_in_thread
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.run import Base, Run, build_configuration
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session import Session
from moot.deploy.runs.task import Cases, task_from_cases
from moot.deploy.studies.ablation.cases import read_cell
from moot.deploy.studies.ablation.effects import CellFigures, measure_cells, with_run_figures
from moot.deploy.studies.ablation.grid import Axis, Cell, baseline_of, check_keys, make_axes
from moot.deploy.studies.ablation.main_effects import main_effects
from moot.deploy.studies.ablation.prepare import (
    ReadyCell,
    check_grid,
    grid_folder,
    prepare_grid,
    write_grid_file,
)
from moot.deploy.studies.ablation.report import Ablation
from moot.deploy.studies.ablation.run_grid import run_grid
from moot.protocols.errors import ConfigError

Over = Mapping[str, Sequence[Any]] | Iterable[str]
"""Varied settings: the values of each key, or `KEY=VALUE,VALUE...` as after `--over`."""

Baseline = Mapping[str, Any] | Iterable[str]
"""Baseline cell: values of some keys, or `KEY=VALUE` as after `--baseline`."""

FEW = 100
"""Minimum number of pairs in a comparison without a warning."""


@dataclass(frozen=True)
class Grid:
    """Grid whose cells were checked.

    Attributes:
        axes: the varied keys.
        baseline: cell that the others are compared with.
        cells: every cell with its checked run.
        share_replies: whether later cells reuse the replies of the first one.
    """

    axes: Sequence[Axis]
    baseline: Cell
    cells: Sequence[ReadyCell]
    share_replies: bool

    def write_file(self) -> None:
        """Write the grid file, which names the cells, into the grid's folder.

        Raises:
            RecordError: the file cannot be written.
        """
        write_grid_file(grid_folder(self.cells), self.axes, self.baseline, share_replies=self.share_replies)

    def measure(self) -> Ablation:
        """Figures of the cells, finished or not.

        Raises:
            ConfigError: no cell has started.
        """
        return measure_grid(
            grid_folder(self.cells),
            self.axes,
            [each.cell for each in self.cells],
            self.baseline,
            same_as={each.cell.name: each.same_as for each in self.cells if each.same_as},
            shared_replies=self.share_replies,
        )


def checked_grid(
    base: RunConfig,
    given: Mapping[str, Any],
    over: Over,
    baseline: Baseline = (),
    *,
    share_replies: bool = False,
    cases: Cases | None = None,
    network: bool = True,
) -> Grid:
    """Check every cell of a grid, with all that it names; writes nothing.

    Args:
        base: common configuration of the cells.
        given: its fields that were given beside a file; None where not given.
        over: varied settings.
        baseline: values of the baseline cell; by default the first value of every key.
        share_replies: whether later cells reuse the replies of the first one.
        cases: cases as objects, instead of `base.task`.
        network: whether to call models.

    Raises:
        UserError: the first error, in one line that names the cell.
    """
    axes = make_axes(over)
    compared_with = baseline_of(axes, baseline)
    check_keys(axes, base, given)
    task = None if cases is None else task_from_cases(cases)
    prepared = prepare_grid(base, axes, share_replies=share_replies, task=task)
    return Grid(axes, compared_with, check_grid(prepared, network=network), share_replies)


def ablate(
    config: Base | None = None,
    *,
    over: Over,
    baseline: Baseline | None = None,
    share_replies: bool = False,
    **options: Any,
) -> Ablation:
    """Run every combination of settings over the same cases, and measure the effect of each setting.

    The same call resumes an interrupted grid. A budget covers all runs together. It also works inside a running event
    loop, as in a notebook.

    >>> import tempfile, moot
    >>> out = tempfile.mkdtemp()
    >>> ablation = moot.ablate(over={"agents": [2, 3]}, task="sample", limit=2, engine="inline", out=out)
    >>> [cell.cell for cell in ablation.cells]
    ['agents=2', 'agents=3']

    Args:
        config: as for `moot.run`.
        over: values of each key that varies: a setting of the protocol, `protocol`, `model`, `agents`, `seed`,
            `encoder`, or `role.NAME`; or a list of `KEY=VALUE,VALUE...`.
        baseline: cell that the others are compared with; by default the first value of every key.
        share_replies: whether identical requests of later cells reuse the replies of the first cell.
        options: as for `moot.run`; `out` is the parent folder of the cells' runs.

    Raises:
        UserError: the first error, in one line that names the cell; nothing was written.
    """
    base, objects = build_configuration(config, options)
    if "protocol" in objects:
        raise ConfigError("protocol: every cell makes its own; name it as module:Class")
    given = {key: value for key, value in options.items() if key not in objects}
    check = partial(
        checked_grid, base, given, over, baseline or (), share_replies=share_replies, cases=objects.get("task")
    )
    with ThreadPoolExecutor(1) as pool:  # the caller's thread may have a running event loop
        grid = pool.submit(check).result()
    grid.write_file()
    stopped = [each.stopped_by for each in run_grid(grid.cells, _run_cell) if each.stopped_by]
    ablation = grid.measure()
    return ablation.model_copy(update={"warnings": [*(f"stopped: {why}" for why in stopped), *ablation.warnings]})


def _run_cell(prepared: Prepared) -> Run:
    """Run a cell; Ctrl-C drains it and is raised again."""
    return run_in_thread(Session(prepared))


def measure_grid(
    folder: str | Path,
    axes: Sequence[Axis],
    grid: Sequence[Cell],
    baseline: Cell,
    *,
    same_as: Mapping[str, str] | None = None,
    shared_replies: bool = False,
) -> Ablation:
    """Figures of a grid, finished or not.

    Args:
        folder: parent of the cells' folders.
        axes: the varied keys.
        grid: the cells.
        baseline: one of them.
        same_as: for each cell without a run of its own, the name of the cell whose run it shares.
        shared_replies: copied into the result.

    Raises:
        ConfigError: no cell has started.
        RecordError: a record cannot be read.
    """
    runs = {cell.name: (same_as or {}).get(cell.name, cell.name) for cell in grid}
    folders = {run: Path(folder) / run for run in runs.values()}
    started = [cell for cell in grid if RunFolder(folders[runs[cell.name]]).exists()]
    if not started:
        raise ConfigError(f"{folder}: no cell of this grid has started")
    own = [cell for cell in started if runs[cell.name] == cell.name]
    read = {cell.name: read_cell(folders[cell.name]) for cell in own}
    figures = measure_cells(own, folders, read, runs[baseline.name])
    by_run = {each.cell: each for each in figures}
    facts = read_run_info(folders[own[0].name])
    has_main_effects = len(axes) > 1 and len(started) == len(grid)
    tokens = {each.cell: each.tokens_per_case for each in figures}
    return Ablation(
        schema_version=facts.schema_version,
        folder=str(folder),
        task=facts.task,
        simulated=any(each.simulated for each in figures),
        baseline=runs[baseline.name],
        cells=[with_run_figures(cell, by_run[runs[cell.name]]) for cell in started],
        not_begun=[cell.name for cell in grid if cell not in started],
        main_effects=main_effects(axes, grid, runs, read, tokens, baseline) if has_main_effects else [],
        shared_replies=shared_replies,
        warnings=_warnings(figures, runs[baseline.name]),
    )


def _warnings(figures: Sequence[CellFigures], baseline: str) -> list[str]:
    warnings = [f"{each.cell}: {cases(each.open)} without a verdict" for each in figures if each.open]
    if all(each.cell != baseline for each in figures):
        warnings.append(f"the baseline, {baseline}, has not started: nothing is compared")
    compared = [each.vs_baseline.accuracy.n for each in figures if each.vs_baseline is not None]
    if compared and 0 < min(compared) < FEW:
        warnings.append(
            f"only {cases(min(compared))} in a comparison: only a large difference can be distinguished from chance; "
            f"take {FEW} or more"
        )
    return warnings
