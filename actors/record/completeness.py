"""Completeness of a record: whatever was flushed is in a segment or in a part, as second places state.

What should be there is known from the flush logs, from the lengths in epochs.json, from the owners' numbers in names,
and from Parquet files that no part lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from moot.actors.record.files import file_bytes, names_in, repair_advice
from moot.actors.record.flush_log import SUFFIX, last_flush
from moot.actors.record.folder import RunFolder, Segment
from moot.actors.record.parts import columns_of, read_part
from moot.actors.record.roll_files import Part, epoch_of, is_roll_name, roll_of, segment_name
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import KEYS, TABLES
from moot.protocols.errors import RecordError
from moot.protocols.regular_files import cause

Losses = dict[str, str]
"""Losses: by file, what is wrong with it."""


def complete_segments(folder: RunFolder, stream: str | None = None) -> list[Segment]:
    """Segments that no part has replaced, oldest owner first.

    Raises:
        RecordError: see `check_complete`.
    """
    segments = list(folder.segments(stream))
    check_complete(folder)
    return segments


def check_complete(folder: RunFolder) -> None:
    """Checks that no file of a record was lost or cut. Reads no rows, unless something seems to be lost.

    Raises:
        RecordError: one was, or a file that determines which files count is damaged.
    """
    for file, fault in losses(folder).items():
        raise RecordError(f"{folder.path / file}: {fault}. {repair_advice(folder.path)}")


def losses(folder: RunFolder) -> Losses:
    """Losses of a record. A live run turns segments into parts meanwhile: what is lost is lost on a second look, too.

    Raises:
        RecordError: a file that determines which files count is damaged.
    """
    first = _losses(folder)
    return {file: fault for file, fault in _losses(folder).items() if file in first} if first else {}


def _losses(folder: RunFolder) -> Losses:
    covered, epochs = folder.covered(), folder.epochs()
    last = max((epoch.number for epoch in epochs), default=0)
    if not any(True for _ in _owned_files(folder)) and (cases := _finished_cases(folder)):
        return {"parts": f"nothing of it is left, and run.yaml says that {cases:,} cases are finished"}
    orphans, stated = _orphans(folder), _stated_by_logs(folder, covered, last)
    stated |= {name: length for name, length in folder.valid_bytes(epochs).items() if name not in covered and length}
    later = sorted(name for name in _owned_files(folder) if epoch_of(name) > last)
    found: Losses = {"epochs.json": f"it is lost, or older than {later[0]}"} if later else {}
    for part, names in orphans.items():
        if not _has_segments(folder, part, covered) and (why := _why_lost(folder, names)):
            found[f"parts/{part}.json"] = f"it is lost, or incomplete: no part lists {', '.join(names)}, {why}"
    rolls = {roll_of(name) for name in covered | stated.keys()} | orphans.keys()
    gone = {roll for epoch in epochs for roll in epoch.rolls} - rolls
    found |= {f"parts/{roll}.json": "it is lost, with the rows of its part" for roll in sorted(gone)}
    return found | {
        f"journal/{name}": fault for name, length in stated.items() if (fault := _cut(folder, name, length))
    }


def _stated_by_logs(folder: RunFolder, covered: set[str], last: int) -> dict[str, int]:
    """Lengths of segments, as the last owner's flush logs state them. Earlier owners' are in epochs.json: what they
    flush after a takeover does not count."""
    rolls = {roll_of(name) for name in covered}
    found: dict[str, int] = {}
    for roll in (name.removesuffix(SUFFIX) for name in names_in(folder.parts, SUFFIX)):
        if roll in rolls or epoch_of(roll) < last:
            continue
        if (flushed := last_flush(folder.flush_log(roll))) is not None:
            found |= {segment_name(roll, stream): length for stream, length in flushed.least().items() if length}
    return found


def _cut(folder: RunFolder, name: str, length: int) -> str:
    try:
        size = file_bytes(folder.journal / name)
    except FileNotFoundError:
        return f"it is not there, and no part was made of it: {length:,} bytes are lost"
    except OSError as error:
        return f"it cannot be read: {cause(error)}"
    return "" if size >= length else f"{size:,} bytes are left of {length:,}"


def _orphans(folder: RunFolder) -> dict[str, list[str]]:
    """Parquet files that no part lists, by the part's name. A part that came too late lists its files, too."""
    return unlisted_files(folder, (folder.part(folder.parts / name) for name in names_in(folder.parts, ".json")))


def unlisted_files(folder: RunFolder, parts: Iterable[Part]) -> dict[str, list[str]]:
    """Parquet files that none of these parts lists, by the name of the part that should."""
    listed = {name for part in parts for name in part.tables.values()}
    found: dict[str, list[str]] = {}
    for table in TABLES:
        for name in names_in(folder.path / table, ".parquet"):
            if f"{table}/{name}" not in listed:
                found.setdefault(name.removesuffix(".parquet"), []).append(f"{table}/{name}")
    return found


def _has_segments(folder: RunFolder, part: str, covered: set[str]) -> bool:
    """Whether the segments of a part that was not committed are still there: of its roll, or of several rolls."""
    left = folder.journal.glob(f"{part}-*.arrows" if is_roll_name(part) else "e*.arrows")
    return any(path.name not in covered and epoch_of(path.name) <= epoch_of(part) for path in left)


def _why_lost(folder: RunFolder, names: list[str]) -> str:
    """Why Parquet files without a part are no leftovers of a crash, whose rows are in a later part; empty if they
    are."""
    try:
        missing = sum(rows_nowhere_else(folder, name.partition("/")[0], name) for name in names)
    except RecordError as error:
        return str(error)
    return f"with {missing:,} rows that are nowhere else" if missing else ""


def rows_nowhere_else(folder: RunFolder, table: str, orphan: str) -> int:
    """Number of rows of a Parquet file that no part has.

    Raises:
        RecordError: a file cannot be read.
    """
    file = folder.path / orphan
    key = [*KEYS[table], *({"reply_id"} & columns_of(file) - {*KEYS[table]})]
    missing: pa.Table = read_part(file, key)
    for part in folder.committed_parts():
        if table in part.tables and missing.num_rows:
            known = read_part(folder.table_file(part, table), key)
            missing = missing.join(known, key, join_type="left anti")
    return int(missing.num_rows)


def _finished_cases(folder: RunFolder) -> int:
    """Number of cases that a session finished, as run.yaml says; 0 if none did, or without a number."""
    try:
        content = read_run_yaml(folder)
    except RecordError:  # whoever needs the file reports it
        return 0
    sessions = content.get("sessions") or []
    finished = any(isinstance(session, dict) and session.get("status") == "finished" for session in sessions)
    cases = content.get("cases")
    return cases if finished and isinstance(cases, int) else 0


def _owned_files(folder: RunFolder) -> Iterator[str]:
    for place in (folder.journal, folder.parts):
        yield from names_in(place)
