"""`moot verify`: integrity check of a record, and salvage of a damaged one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moot.deploy.cli import options
from moot.protocols.errors import RecordError

if TYPE_CHECKING:
    from moot.actors.record.folder import RunFolder

DAMAGED = 2
"""Exit code for a damaged record."""


def verify(
    folder: options.Folder,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Keep intact data; move replaced files into damaged/ in the folder.")
    ] = False,
) -> None:
    """Check the checksums, counts and references of a record that no run is writing.

    A server's folder is checked with its accepted requests and all of its runs, a run with its library of documents. A
    library's folder can be named, too.
    """
    from moot.deploy.cli.verify_folder import is_damaged, runs_in, verify_others

    runs = runs_in(folder)
    if runs == [folder]:
        damaged = [_verify_run(folder, salvage=salvage)]
    else:
        damaged = [is_damaged(run, lambda run: _verify_run(run, salvage=salvage)) for run in runs]
    if verify_others(folder, runs) or any(damaged):
        raise typer.Exit(DAMAGED)


def _verify_run(folder: Path, *, salvage: bool) -> bool:
    """Verify a run, print the report, and return whether the run is damaged."""
    from moot.actors.record.folder import RunFolder
    from moot.actors.record.salvage import ASIDE
    from moot.actors.record.salvage import salvage as salvaged
    from moot.actors.record.store.mirror import display_name, store_of, with_uris
    from moot.actors.record.verify import verify as verified
    from moot.deploy.results.text import visible_line

    record = RunFolder(folder, store_of(folder))
    result = verified(record)
    if salvage:
        print_loss(record, result.faults)
        if report := salvaged(record):
            print("\n".join(map(visible_line, report)))
            result = verified(record)
        if report and (record.path / ASIDE).exists():
            print(visible_line(f"the files that were replaced are in {record.path / ASIDE}"))
    unchecked = f", {result.unchecked:,} files of an earlier version without checksum" if result.unchecked else ""
    if result.unlogged:
        unchecked += f", {result.unlogged:,} journal files without a flush log, of which a loss cannot be noticed"
    print(f"{display_name(folder)}: {'damaged' if result.faults else 'whole'}")
    print(f"  {result.files:,} files compared with their checksums{unchecked}")
    for remark in result.remarks:
        print(f"  {remark}")
    if result.rows:
        print(f"  {', '.join(f'{table} {rows:,}' for table, rows in result.rows.items())}")
    for fault in result.faults:
        print(f"  {visible_line(with_uris(fault))}")
    if not salvage:
        print_loss(record, result.faults)
    if result.advice:
        print(visible_line(with_uris(result.advice)))
    return bool(result.faults)


def print_loss(record: RunFolder, faults: Sequence[str]) -> None:
    """Print which replies are lost, before anything is written; nothing for an intact record."""
    from moot.actors.record.lost_replies import find_lost_replies

    with suppress(RecordError):  # a fault says which file determines that, and is damaged
        for line in find_lost_replies(record).lines() if faults else ():
            print(line)
