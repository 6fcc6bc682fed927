"""Task detection for a bare file: by its columns, or an error with what each task misses."""

from __future__ import annotations

from itertools import islice
from pathlib import Path, PurePath

from moot.protocols.errors import ConfigError, TaskFileError
from moot.protocols.near_paths import near_path
from moot.protocols.tasks.formats import TextTable
from moot.protocols.tasks.own_cases.columns import FIELDS, SPLIT, ColumnFinder, listed
from moot.protocols.tasks.own_cases.task import NAME, open_table
from moot.protocols.tasks.public_questions import MARK
from moot.protocols.tasks.spec import TaskSpec

PUBLIC: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("truthfulqa", ("Question", "Best Answer", "Incorrect Answers")),
    ("asap", ("essay_id", "essay_set", "essay")),
    ("fever", ("claim", "verifiable", "label", "evidence")),
)
"""Tasks of public files by distinctive columns; the first complete match decides."""

OWN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("claims", ("claim",)),
    ("replies", ("reply",)),
    ("labels", ("text", "label")),
    ("subjects", ("subject",)),
)
"""Tasks of users' own files in CSV or JSON Lines, and their required columns."""

FOLDERS = (("hallusionbench", "HallusionBench.json"), ("symptoms", "dataset.csv"))
"""Tasks of folders, by a file in the folder."""

_ROWS = 20
"""Rows of a JSON file whose keys are examined."""


def detect_spec(bare: str) -> str:
    """Spec for a bare file or folder, or one with a column map, prefixed with the matching task.

    Raises:
        ConfigError: no task matches; lists the missing columns of each.
        TaskFileError: there is no such file, or it cannot be read.
    """
    found = TaskSpec(NAME, bare)
    if not path_exists(bare):
        found = found.with_columns((*FIELDS, SPLIT))
    path = found.path or ""
    if not path_exists(path):
        near = near_path(path) or ", and no task's name; `moot tasks` lists those"
        raise ConfigError(f"task {bare!r}: no such file or folder{near}")
    if found.columns:
        return str(found)
    if Path(path).expanduser().is_dir():
        inside = (name for name, file in FOLDERS if (Path(path).expanduser() / file).is_file())
        return f"{next(inside, NAME)}:{path}"
    if PurePath(path).suffix.lower() == ".txt":
        return f"subjects:{path}"
    return f"{_fitting(path)}:{path}"


def _fitting(path: str) -> str:
    table = open_table(path)
    header, first = table.header(), ""
    if header is None:
        rows = list(islice(table.rows(), _ROWS))
        if rows and rows[0].problem is not None:
            raise rows[0].problem
        header = tuple(dict.fromkeys(key for row in rows for key in row.values))
        first = str(rows[0].values.get("answer", "")) if rows else ""
    if not header:
        raise TaskFileError(path, 0, "", "expected at least one case, found none")
    for name, columns in PUBLIC:
        if set(columns) <= set(header):
            return name
    plain = isinstance(table, TextTable) and table.is_plain
    if plain and MARK in first and set(header) <= {"question", "answer", "id"}:
        return "gsm8k"
    try:
        ColumnFinder(path, {}).of_header(header)
        asked = ""
    except TaskFileError as error:
        if error.field != "question":
            raise
        asked = error.field
    for name, columns in OWN if plain else ():
        if set(columns) <= set(header) and (asked or name != "subjects"):
            return name
    if not asked:
        return NAME
    raise ConfigError(_misses(path, header, plain))


def _misses(path: str, header: tuple[str, ...], plain: bool) -> str:
    """Error for a file that fits no task."""
    needs = [(NAME, ("question",)), *(OWN if plain else ())]
    missing = "; ".join(
        f"{name} needs {' and '.join(column for column in columns if column not in header)}" for name, columns in needs
    )
    return (
        f"task {path!r}: no task fits the columns {listed(header)}: {missing}. Say which column is which, as in "
        f"cases:{path}:question=COLUMN,gold=COLUMN"
    )


def path_exists(path: str) -> bool:
    """Whether a bare name is a file or folder. Raises nothing."""
    try:
        return bool(path) and Path(path).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False
