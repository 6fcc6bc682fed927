"""Arguments and options that several commands share, such as a run's folder or `--format`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _record(named: str) -> Path:
    from moot.actors.record.store.mirror import record_path

    return record_path(named)


Folder = Annotated[
    Path,
    typer.Argument(help="Folder or URI of a run.", metavar="FOLDER", parser=_record, show_default=False),
]
Folders = Annotated[
    list[Path],
    typer.Argument(help="Runs over the same cases.", metavar="FOLDERS...", parser=_record, show_default=False),
]
Reported = Annotated[
    list[Path],
    typer.Argument(
        help="A run, or several over the same cases.", metavar="RUNS...", parser=_record, show_default=False
    ),
]
LabelledRuns = Annotated[
    list[Path],
    typer.Argument(help="Folders of runs with gold labels.", metavar="RUNS...", parser=_record, show_default=False),
]
JudgedRuns = Annotated[
    list[Path] | None,
    typer.Argument(help="Folders of runs whose replies were judged.", metavar="[RUNS]...", parser=_record),
]
File = Annotated[Path | None, typer.Argument(help="A YAML configuration; flags override it.")]


def _known_form(form: str | None) -> str | None:
    from moot.deploy.results.text import check_output_format

    if form is not None:
        check_output_format(form)
    return form


Form = Annotated[str, typer.Option("--format", callback=_known_form, help="text, json or md.")]
PrintedForm = Annotated[
    str | None, typer.Option("--format", callback=_known_form, help="Print the report instead: text, json or md.")
]
KeepTruncated = Annotated[
    bool, typer.Option("--keep-truncated", help="Include replies that were truncated at their token limit.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate cases, calls and tokens, and exit.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
