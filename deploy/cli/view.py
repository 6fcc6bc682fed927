"""`moot view`: a folder's runs in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def view(
    folder: Annotated[Path, typer.Argument(help="Folder of your runs, or of a run.", metavar="[RUNS]")] = Path("runs"),
    host: Annotated[
        str, typer.Option(help="Address to listen on; a non-loopback address needs a token in MOOT_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.")] = 8001,
) -> None:
    """Show runs in a browser, finished and under way, until Ctrl-C."""
    from moot.deploy.service.view.process import run_view

    raise typer.Exit(run_view(folder, host, port))
