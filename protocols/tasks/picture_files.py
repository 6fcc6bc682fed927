"""Picture files of a row, restricted to its folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from moot.protocols.tasks.row import Row, shown


def picture_within(row: Row, field: str, folder: Path, name: str) -> Path | None:
    """File of a folder named by `field`; None when it does not exist.

    Raises:
        TaskFileError: it is outside of the folder, perhaps through a link, or cannot be accessed.
    """
    try:
        root = folder.resolve()
        file = (root / name).resolve()
        inside, there = file.is_relative_to(root), file.is_file()
    except (OSError, ValueError, RuntimeError):
        raise row.error(field, f"expected the name of a picture, found {shown(name)}") from None
    if not inside:
        raise row.error(field, f"expected a picture in the folder {folder} or below it, {shown(name)} is outside")
    return file if there else None


def pictures_beside(row: Row, field: str, names: Iterable[str]) -> tuple[Path, ...]:
    """Files in the folder of the row's own file, or below it, named by `field`.

    Raises:
        TaskFileError: one is missing or outside of the folder, or the row comes from standard input.
    """
    wanted = tuple(names)
    if wanted and row.file == "-":
        raise row.error(field, "standard input lies in no folder: put the rows into a file beside their pictures")
    folder = Path(row.file).expanduser().absolute().parent
    files = []
    for name in wanted:
        found = picture_within(row, field, folder, name)
        if found is None:
            raise row.error(field, f"expected a picture in the folder of the file, there is no {shown(name)}")
        files.append(found)
    return tuple(files)
