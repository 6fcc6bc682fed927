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
    """No search for reference cycles: a report makes millions of objects without any, and takes half the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # nor one at the end, through all that is about to be freed
        gc.enable()


def report(
    folders: options.Reported,
    out: Annotated[
        Path | None, typer.Option(help="The file to write (default: report.html); an earlier report there is replaced.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for every chart as SVG and PNG; needs pip install 'moot\\[plot]'.")
    ] = None,
    form: options.PrintedForm = None,
) -> None:
    """Write a report of one run, or of several over the same cases, as a page that opens from disk."""
    from moot.actors.record.files import write_whole
    from moot.deploy.results.plotting import require_matplotlib
    from moot.deploy.results.report.chart_figures import save_figures
    from moot.deploy.results.report.html import check_replaceable
    from moot.deploy.results.report.render import show_report
    from moot.deploy.results.run_report.build import build_report
    from moot.protocols.errors import ConfigError

    if form is not None and out is not None:
        raise ConfigError("--format prints the report and --out writes the page: leave one out")
    if figures is not None:
        require_matplotlib("--figures")
    built = build_report(*folders)
    with _without_collector():
        if form is not None:
            show_report(built.document(), lambda: built.blocks, form)
        else:
            file = out or Path("report.html")
            check_replaceable(file)
            page = built.html()
            write_whole(file, page.encode())
            print(f"report: {file} ({len(page) / 1e6:.1f} MB)")
    if figures is not None:
        files = save_figures(built.blocks, figures, simulated=built.simulated)
        typer.echo(f"figures: {figures} ({len(files)} files)", err=form is not None)
