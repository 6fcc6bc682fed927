"""`moot ablate`: grid of runs, one per combination of settings, and the effect of each setting."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from moot.deploy.cli import generated_flags, options

if TYPE_CHECKING:
    from moot.deploy.studies.ablation.prepare import ReadyCell

Command = generated_flags.run_options(
    "attended",
    protocol="A protocol (default: selene), or module:Class.",
    out="Folder of the cells' runs; by default in runs/, from protocol, task and seed.",
)


def ablate(
    context: typer.Context,
    file: options.File = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            help="KEY=VALUE,VALUE...; KEY: a setting, protocol, model, agents, seed, encoder, role.NAME; repeatable."
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE of the cell to compare with (default: the first values).")
    ] = None,
    share_replies: Annotated[
        bool, typer.Option("--share-replies", help="Answer identical requests of later cells by the first's replies.")
    ] = False,
    form: options.Form = "text",
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
) -> None:
    """Run every combination of settings over the same cases, and show the effect of each setting.

    The same command resumes an interrupted grid. A budget covers all runs together.
    """
    from moot.deploy.cli.console import build_run_config, print_next_commands
    from moot.deploy.results.text import shell_path
    from moot.deploy.studies.ablation.ablate import checked_grid
    from moot.deploy.studies.ablation.prepare import has_gold
    from moot.deploy.studies.ablation.report import next_cells, show_ablation
    from moot.deploy.studies.ablation.run_grid import plan_lines

    base = build_run_config(context.obj, file)
    grid = checked_grid(base, context.obj, over or [], baseline or [], share_replies=share_replies, network=not dry_run)
    if not has_gold(grid.cells):
        print(
            "warning: no case has a gold label: accuracies are unknown, and answers are counted instead",
            file=sys.stderr,
        )
    if dry_run:
        print("\n".join(plan_lines(grid.cells)))
        return
    grid.write_file()
    code = _run_grid(grid.cells, quiet=quiet)
    ablation = grid.measure()
    show_ablation(ablation, form)
    if form == "text":
        print_next_commands(
            (f"moot show {shell_path(f'{ablation.folder}/{cell}')}", about) for cell, about in next_cells(ablation)
        )
    raise typer.Exit(code)


def _run_grid(grid: Sequence[ReadyCell], *, quiet: bool) -> int:
    """Run the unfinished cells; returns the exit code.

    Raises:
        Exit: a cell was interrupted.
    """
    from moot.deploy.cli.console import print_status, report_interrupted, report_outcome, run_with_progress
    from moot.deploy.runs.outcome import EXIT_STOPPED, Run
    from moot.deploy.runs.prepare import Prepared
    from moot.deploy.studies.ablation.prepare import cells_to_run
    from moot.deploy.studies.ablation.run_grid import run_grid

    names = [each.cell.name for each in cells_to_run(grid)]
    for each in grid:
        if each.same_as:
            print_status(f"cell {each.cell.name} is skipped: its settings equal those of {each.same_as}", quiet=quiet)

    def run_cell(prepared: Prepared) -> Run:
        name = prepared.folder.name
        print_status(f"cell {names.index(name) + 1} of {len(names)}, {name}:", quiet=quiet)
        return run_with_progress(prepared, quiet=quiet)

    code = 0
    for cell, run, stopped_by in run_grid(grid, run_cell):
        if run is None:
            print(f"stopped: {stopped_by}; cell {cell.cell.name} and later cells were not run", file=sys.stderr)
            return EXIT_STOPPED
        if run.status == "interrupted":
            raise typer.Exit(report_interrupted(run, cell.prepared))
        if not run.worked:
            print_status(f"cell {cell.cell.name}:", quiet=quiet)
        report_outcome(dataclasses.replace(run, stopped_by=stopped_by), cell.prepared, quiet=quiet)
        code = max(code, run.exit_code)
    return code
