"""Verification of a record: every checksum, every count and every reference, without changing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.files import repair_advice
from moot.actors.record.folder import Part, RunFolder, decode_part
from moot.actors.record.parts import open_part
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import TABLES
from moot.actors.record.segments import has_checksums, read_segment
from moot.actors.record.tables import read_table
from moot.protocols.case import is_shared_id
from moot.protocols.errors import RecordError

_REFERENCES = {
    "turns": ("case_id", "cases"),
    "events": ("case_id", "cases"),
    "embeddings": ("case_id", "cases"),
    "verdicts": ("case_id", "cases"),
    "tokens": ("reply_id", "turns"),
    "judgments": ("reply_id", "turns"),
}
"""By table, its column whose every value occurs in the same column of another table."""


@dataclass
class VerificationReport:
    """Report of a verification.

    Attributes:
        faults: one line per fault; empty if there are none.
        advice: how to repair what can be repaired; empty if nothing can.
        files: number of files verified by checksum.
        unchecked: number of files of an earlier version without a checksum.
        rows: rows by table; empty if the tables cannot be read.
    """

    faults: list[str] = field(default_factory=list)
    advice: str = ""
    files: int = 0
    unchecked: int = 0
    rows: dict[str, int] = field(default_factory=dict)


def verify(folder: RunFolder) -> VerificationReport:
    """Verifies every byte of a record without a live writer.

    Raises:
        RecordError: the folder has no run.
    """
    if not folder.exists():
        raise RecordError(folder.missing())
    found = VerificationReport()
    found.faults += _run_yaml(folder)
    found.faults += _parts(folder, found)
    found.faults += _segments(folder, found)
    if not found.faults:
        found.faults += _tables(folder, found)
    advice = repair_advice(folder.path)
    found.advice = advice if any(advice in fault for fault in found.faults) else ""
    found.faults = [fault.removesuffix(f". {advice}") for fault in found.faults]
    return found


def _run_yaml(folder: RunFolder) -> Iterator[str]:
    for read in (lambda: read_run_yaml(folder), folder.epochs):
        try:
            read()
        except RecordError as error:
            yield str(error)


def _parts(folder: RunFolder, found: VerificationReport) -> Iterator[str]:
    listed = set()
    for file in sorted(folder.parts.glob("*.json")):
        try:
            part = decode_part(file)
        except RecordError as error:
            yield str(error)
            continue
        for table, name in part.tables.items():
            listed.add(folder.path / name)
            yield from _part_file(folder, part, table, found)
    for table in TABLES:
        for orphan in sorted(set((folder.path / table).glob("*.parquet")) - listed):
            yield f"{orphan}: no part lists it. {repair_advice(folder.path)}"


def _part_file(folder: RunFolder, part: Part, table: str, found: VerificationReport) -> Iterator[str]:
    advice = repair_advice(folder.path)
    with_checksum = part.checksums.get(table) is not None
    found.files += with_checksum
    found.unchecked += not with_checksum
    try:
        with open_part(folder.table_file(part, table)) as content:
            for number in range(content.groups):
                content.read(None, [number])
    except RecordError as error:
        yield f"{str(error).removesuffix(f'. {advice}')}. {advice}"


def _segments(folder: RunFolder, found: VerificationReport) -> Iterator[str]:
    try:
        segments = list(folder.segments())
        covered = {name for part in folder.committed_parts() for name in part.covers}
        known = folder.valid_bytes().keys()
    except RecordError:
        return  # its file is already reported
    for name in sorted(known - covered - {path.name for path, _ in segments}):
        yield f"{folder.journal / name}: it is not there, and no part was made of it"
    for path, valid in segments:
        try:
            if has_checksums(path):
                found.files += 1
            else:
                found.unchecked += 1
            for _ in read_segment(path, valid):
                pass
        except (RecordError, OSError) as error:
            yield str(error)


def _tables(folder: RunFolder, found: VerificationReport) -> Iterator[str]:
    columns = {table: ["reply_id"] if "reply_id" in TABLES[table].names else [] for table in TABLES}
    tables = {table: read_table(folder, table, columns[table]) for table in TABLES}
    found.rows = {table: content.num_rows for table, content in tables.items()}
    for table, (column, other) in _REFERENCES.items():
        lost = _not_in(tables[table][column], tables[other][column], internal=column == "case_id")
        if lost:
            yield f"{folder.path}: {lost:,} rows of `{table}` have a {column} that `{other}` does not hold"
    repeated = [case for case, count in Counter(tables["cases"]["case_id"].to_pylist()).items() if count > 1]
    if repeated:
        yield f"{folder.path}: `cases` holds {repeated[0]!r} twice"


def _not_in(values: pa.ChunkedArray, known: pa.ChunkedArray, *, internal: bool) -> int:
    """Number of unknown values; shared replies have an id of their own and no case."""
    unknown = values.filter(pc.invert(pc.is_in(values, value_set=pc.unique(known))))
    return sum(not (internal and is_shared_id(value)) for value in unknown.to_pylist())
