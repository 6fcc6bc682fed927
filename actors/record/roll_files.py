"""Files of a roll: the names of its segments, its part and its flush log, and the content of its part's file."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from moot.actors.record.files import read_file
from moot.actors.record.schema import JOURNAL, TABLES
from moot.protocols.errors import RecordError

_N = "[0-9]{1,18}"
OWNED = re.compile(rf"e({_N})-")
"""Beginning of the names of all files of one owner, with its number."""

_PART_NAME = re.compile(rf"e{_N}-(w{_N}-r{_N}|rest{_N})")
SEGMENT = re.compile(rf"e({_N})-w({_N})-r({_N})-({'|'.join(JOURNAL)})\.arrows")
ROLL = re.compile(rf"e{_N}-w{_N}-r({_N})")


class Part(msgspec.Struct):
    """Committed roll.

    Attributes:
        tables: Parquet files by table, as names relative to the run's folder.
        covers: the segments that they replace.
        checksums: CRC-32 of the files, by table; empty in parts of earlier versions.
    """

    tables: dict[str, str]
    covers: list[str]
    checksums: dict[str, int] = {}


def decode_part(file: Path) -> Part:
    """Decodes the file of a committed roll.

    Raises:
        RecordError: the file cannot be parsed, or names files that are not its own.
    """
    part = read_file(file, Part)
    for table, name in part.tables.items():
        if table not in TABLES or name != f"{table}/{file.stem}.parquet" or not is_part_name(file.stem):
            raise RecordError(f"{file} cannot be read: {name!r} is no file of this part")
    if not all(map(is_segment_name, part.covers)):
        raise RecordError(f"{file} cannot be read: it names what is no segment")
    return part


def is_segment_name(name: str) -> bool:
    """Whether a name is that of a journal segment."""
    return SEGMENT.fullmatch(name) is not None


def roll_of(segment: str) -> str:
    """Roll of a segment, by its name."""
    return segment.rsplit("-", 1)[0]


def segment_name(roll: str, stream: str) -> str:
    """Name of a segment."""
    return f"{roll}-{stream}.arrows"


def stream_of_segment(name: str) -> str:
    """Stream of a segment, by its name."""
    return name.rsplit("-", 1)[1].removesuffix(".arrows")


def epoch_of(name: str) -> int:
    """Number of the owner that wrote a segment, a part or a flush log, by its name; 0 for any other name."""
    parsed = OWNED.match(name)
    return int(parsed[1]) if parsed is not None else 0


def is_part_name(name: str) -> bool:
    """Whether a name is that of a committed roll."""
    return _PART_NAME.fullmatch(name) is not None


def is_roll_name(name: str) -> bool:
    """Whether a name is that of a roll."""
    return ROLL.fullmatch(name) is not None


def roll_name(epoch: int, writer: int, roll: int) -> str:
    """Common stem of a roll's files."""
    return f"e{epoch:04d}-w{writer}-r{roll:04d}"
