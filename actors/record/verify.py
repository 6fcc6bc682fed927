"""Verification of a record: every checksum, every count and every reference, without changing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.completeness import losses
from moot.actors.record.files import read_file, repair_advice
from moot.actors.record.flush_log import SUFFIX, check_flush_log
from moot.actors.record.folder import RunFolder
from moot.actors.record.lost_replies import known_to_be_lost, lost_cases, replies_that_verdicts_lack
from moot.actors.record.parts import open_part
from moot.actors.record.referenced_files import referenced_files
from moot.actors.record.roll_files import Part, decode_part, roll_of
from moot.actors.record.run_yaml import remarks_on, sealed_run_yaml
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
        remarks: what is no fault, but should be known.
        advice: how to repair what can be repaired; empty if nothing can.
        files: number of files verified by checksum.
        unchecked: number of files of an earlier version without a checksum.
        unlogged: number of segments without a flush log, as of an earlier version: nobody knows their lengths.
        rows: rows by table; empty if the tables cannot be read.
    """

    faults: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    advice: str = ""
    files: int = 0
    unchecked: int = 0
    unlogged: int = 0
    rows: dict[str, int] = field(default_factory=dict)


def verify(folder: RunFolder) -> VerificationReport:
    """Verifies every byte of a record without a live writer.

    Raises:
        RecordError: the folder has no run.
    """
    if not folder.exists():
        raise RecordError(folder.missing())
    found = VerificationReport()
    found.faults += _run_yaml(folder, found)
    found.faults += _lists(folder)
    found.faults += _losses(folder)
    found.faults += _parts(folder, found)
    found.faults += _segments(folder, found)
    if not found.faults:
        found.faults += _tables(folder, found)
    advice = repair_advice(folder.path)
    found.advice = advice if any(advice in fault for fault in found.faults) else ""
    found.faults = [fault.removesuffix(f". {advice}") for fault in found.faults]
    return found


def _run_yaml(folder: RunFolder, found: VerificationReport) -> Iterator[str]:
    try:
        settings, seal = sealed_run_yaml(folder)
    except RecordError as error:
        yield str(error)
        return
    found.files += seal == "whole"
    found.unchecked += seal == "none"
    found.remarks += remarks_on(settings)
    for file in referenced_files(folder.path, settings):
        found.files += 1
        if file.fault:
            yield f"{folder.path / file.name}: {file.fault}"


def _lists(folder: RunFolder) -> Iterator[str]:
    for read in (folder.epochs, lambda: _ledger(folder.path / "limits.json")):
        try:
            read()
        except (RecordError, OSError) as error:
            yield str(error)


def _ledger(file: Path) -> None:
    if file.exists():
        read_file(file, dict[str, Any])


def _losses(folder: RunFolder) -> Iterator[str]:
    try:
        for file, fault in losses(folder).items():
            yield f"{folder.path / file}: {fault}. {repair_advice(folder.path)}"
    except RecordError:
        return  # its file is reported below, or above


def _parts(folder: RunFolder, found: VerificationReport) -> Iterator[str]:
    for file in sorted(folder.parts.glob("*.json")):
        try:
            part = decode_part(file)
        except RecordError as error:
            yield str(error)
            continue
        for table in part.tables:
            yield from _part_file(folder, part, table, found)
    for log in sorted(folder.parts.glob(f"*{SUFFIX}")):
        found.files += 1
        try:
            check_flush_log(log)
        except RecordError as error:
            yield str(error)


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
    except RecordError:
        return  # its file is already reported
    for segment in segments:
        try:
            with_checksums = has_checksums(segment.path)
            found.files += with_checksums
            found.unchecked += not with_checksums
            found.unlogged += with_checksums and not folder.flush_log(roll_of(segment.path.name)).exists()
            for _ in read_segment(*segment):
                pass
        except (RecordError, OSError) as error:
            yield str(error)


def _tables(folder: RunFolder, found: VerificationReport) -> Iterator[str]:
    columns = {table: ["reply_id"] if "reply_id" in TABLES[table].names else [] for table in TABLES}
    tables = {table: read_table(folder, table, columns[table]) for table in TABLES}
    found.rows = {table: content.num_rows for table, content in tables.items()}
    known_lost = known_to_be_lost(folder)
    for table, (column, other) in _REFERENCES.items():
        known = tables[other][column]
        if column == "case_id":
            known = pa.chunked_array([*known.chunks, lost_cases(known_lost)], known.type)
        lost = _not_in(tables[table][column], known, internal=column == "case_id")
        if lost:
            yield f"{folder.path}: {lost:,} rows of `{table}` have a {column} that `{other}` does not hold"
    replies, tokens = replies_that_verdicts_lack(folder, known_lost)
    if replies or tokens:
        yield (
            f"{folder.path}: {replies:,} replies with {tokens:,} tokens that verdicts state are not in `turns`. "
            f"{repair_advice(folder.path)}"
        )
    repeated = [case for case, count in Counter(tables["cases"]["case_id"].to_pylist()).items() if count > 1]
    if repeated:
        yield f"{folder.path}: `cases` holds {repeated[0]!r} twice"


def _not_in(values: pa.ChunkedArray, known: pa.ChunkedArray, *, internal: bool) -> int:
    """Number of unknown values; shared replies have an id of their own and no case."""
    unknown = values.filter(pc.invert(pc.is_in(values, value_set=pc.unique(known))))
    return sum(not (internal and is_shared_id(value)) for value in unknown.to_pylist())
