"""`moot report`: a run, or several, as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moot.deploy.cli import options


def report(
    folders: options.Reported,
    out: Annotated[Path, typer.Option(help="The file to write; an existing one is replaced.")] = Path("report.html"),
) -> None:
    """Write a report of one run, or of several over the same cases, as a page that opens from disk."""
    from moot.actors.record.files import write_whole
    from moot.deploy.results.run_report.build import build_report

    page = build_report(*folders).html()
    write_whole(out, page.encode())
    print(f"report: {out} ({len(page) / 1e6:.1f} MB)")
