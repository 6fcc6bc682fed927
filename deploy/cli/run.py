"""`moot run`: its own flags; the settings of a run are fields in `deploy/runs/run_config.py`."""

from __future__ import annotations

from typing import Annotated

import typer

from moot.deploy.cli import generated_flags, options

Command = generated_flags.run_options()


def run(
    context: typer.Context,
    file: options.File = None,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Serve a live page of the run, and print its address.")
    ] = False,
) -> None:
    """Run debates, or resume an interrupted run with the same command."""
    from moot.deploy.cli.protocol_runs import execute

    raise typer.Exit(execute(file, context.obj, dry_run=dry_run, quiet=quiet, watch=watch))
