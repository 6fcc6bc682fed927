"""`moot report`: a run, or several, as one self-contained HTML page, in a terminal, or as figures."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from moot.deploy.cli import options


@contextmanager
def _without_collector() -> Iterator[None]:
    """Context without cyclic garbage collection, which takes half the time of a report and frees nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # excludes the report's objects from the collection at exit
        gc.enable()


def report(
    folders: options.Reported,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write (default: report.html); an existing report is replaced, missing folders are made."
        ),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for all charts as SVG and PNG; needs the extra plot.")
    ] = None,
    form: options.PrintedForm = None,
) -> None:
    """Write a report of one run, or of several runs over the same cases, as one self-contained HTML page."""
    from moot.actors.record.files import write_whole
    from moot.deploy.results.report.html import replaced_title
    from moot.deploy.results.report.plots import check_figures_folder, save_figures
    from moot.deploy.results.report.render import show_report
    from moot.deploy.results.run_report.report import build_report
    from moot.deploy.results.text import visible_line
    from moot.protocols.errors import ConfigError

    if form is not None and out is not None:
        raise ConfigError("--format prints the report, --out writes the page: leave one out")
    if figures is not None:
        check_figures_folder(figures)
    file = out or Path("report.html")
    earlier = None if form is not None else replaced_title(file)
    built = build_report(*folders)
    with _without_collector():
        if form is not None:
            show_report(built.document(), lambda: built.blocks, form)
        else:
            page = built.html()
            write_whole(file, page.encode())
            replaced = "" if earlier in (None, built.title) else f", replaces the page '{visible_line(str(earlier))}'"
            print(f"report: {file} ({len(page) / 1e6:.1f} MB){replaced}")
    if figures is not None:
        files = save_figures(built.blocks, figures, simulated=built.simulated)
        typer.echo(f"figures: {figures} ({len(files)} files)", err=form is not None)
