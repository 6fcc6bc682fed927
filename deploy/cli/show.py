"""`moot show`: a run's figures, or one of its debates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show(
    folder: Annotated[Path, typer.Argument(help="A run's folder.", show_default=False)],
    case: Annotated[str | None, typer.Argument(help="A case's id: show its debate.")] = None,
    attempt: Annotated[int | None, typer.Option(help="Of the case; the latest when not given.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="With a case: plot its rounds into this .svg or .png as well.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="text, json or md.")] = "text",
) -> None:
    """Show a run's figures, or one debate as a transcript."""
    from moot.deploy.reading.show import show as shown

    shown(folder, case, attempt=attempt, form=form, plot=plot)
