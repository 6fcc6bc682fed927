"""`moot view`: web pages of a folder's runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _folder(named: str) -> Path:
    from moot.actors.record.store.uri import is_uri, local_path
    from moot.protocols.errors import ConfigError

    if is_uri(named):
        raise ConfigError(f"{named}: pages are served of runs in a folder: copy them from the bucket")
    return local_path(named) if named.lower().startswith("file:") else Path(named)


def view(
    folder: Annotated[
        Path, typer.Argument(help="Folder of runs, or of one run.", metavar="[RUNS]", parser=_folder)
    ] = Path("runs"),
    host: Annotated[
        str, typer.Option(help="Address to listen on; a non-loopback address needs a token in MOOT_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.")] = 8001,
) -> None:
    """Serve web pages of finished and live runs until Ctrl-C."""
    from moot.deploy.service.view.process import run_view

    raise typer.Exit(run_view(folder, host, port))
