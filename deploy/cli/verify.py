"""`moot verify`: integrity check of a record, and salvage of a damaged one."""

from __future__ import annotations

from typing import Annotated

import typer

from moot.deploy.cli import options

DAMAGED = 2
"""Exit code for a damaged record."""


def verify(
    folder: options.Folder,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Keep intact data; move replaced files into damaged/ in the folder.")
    ] = False,
) -> None:
    """Check the checksums, counts and references of a record that no run is writing."""
    from moot.actors.record.folder import RunFolder
    from moot.actors.record.salvage import salvage as salvaged
    from moot.actors.record.store.mirror import display_name, store_of, with_uris
    from moot.actors.record.verify import verify as verified
    from moot.deploy.results.text import visible_line

    record = RunFolder(folder, store_of(folder))
    if salvage:
        for line in salvaged(record):
            print(line)
    result = verified(record)
    unchecked = f", {result.unchecked:,} files of an earlier version without checksum" if result.unchecked else ""
    print(f"{display_name(folder)}: {'damaged' if result.faults else 'whole'}")
    print(f"  {result.files:,} files compared with their checksums{unchecked}")
    if result.rows:
        print(f"  {', '.join(f'{table} {rows:,}' for table, rows in result.rows.items())}")
    for fault in result.faults:
        print(f"  {visible_line(with_uris(fault))}")
    if result.faults:
        raise typer.Exit(DAMAGED)
