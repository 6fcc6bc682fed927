"""The path that a mistyped one may mean, for an error message."""

from __future__ import annotations

import difflib
from itertools import islice
from pathlib import Path

_MOST_NAMES = 2000
"""Names of a folder that are compared."""

_LEAST_SIMILAR = 0.7


def near_path(path: str | Path, holds: str = "") -> str:
    """End of an error message on a path that does not exist: the path that may be meant; empty if none is similar.

    The first of its parts that does not exist is compared with the names beside it; hidden ones are left out.

    Args:
        path: as the user wrote it.
        holds: file or folder that must exist in what is meant.
    """
    wanted = Path(path)
    try:
        folder, missing = _first_missing(wanted)
        beside = (each.name for each in folder.expanduser().iterdir() if not each.name.startswith("."))
        for name in difflib.get_close_matches(missing.name, islice(beside, _MOST_NAMES), cutoff=_LEAST_SIMILAR):
            meant = folder / name / wanted.relative_to(missing)
            if (meant.expanduser() / holds).exists():
                return f"; did you mean {str(meant)!r}?"
    except (OSError, ValueError, RuntimeError):  # it cannot be a path, or its folder cannot be listed
        pass
    return ""


def _first_missing(wanted: Path) -> tuple[Path, Path]:
    """The deepest folder of a path that exists, and the part in it that does not."""
    for each in (*reversed(wanted.parents), wanted):
        if not each.expanduser().exists():
            return each.parent, each
    raise ValueError("it exists")
