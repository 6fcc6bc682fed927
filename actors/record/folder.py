"""Run folder: its owner, its journal segments with their valid lengths, and its committed parts.

runs/NAME/
    run.yaml                 configuration, versions, seed
    owner.lock               held (flock) by the one live owner
    epochs.json              one entry per owner, with the segment lengths it found when it took over
    journal/                 segments: eEPOCH-wWRITER-rROLL-STREAM.arrows
    parts/                   one JSON per committed roll: its Parquet files and the segments they replace; and
                             ROLL.flushes, the flush log of each roll
    TABLE/                   Parquet files: eEPOCH-wWRITER-rROLL.parquet
    signals/                 running aggregates for the live page, see `signal_file`; no part of the record

In a store (see `moot.actors.record.store`) the same, but `owner.json` for the lock, and journal/ROLL/NUMBER.delta with
what each flush appended to the segments of a roll.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from moot.actors.record.files import (
    checksum,
    decode_file,
    file_content,
    names_in,
    read_file,
    reading,
    repair_advice,
    write_whole,
)
from moot.actors.record.flush_log import SUFFIX, Flushed, last_flush
from moot.actors.record.roll_files import OWNED, ROLL, SEGMENT, Part, decode_part, roll_name, roll_of, segment_name
from moot.actors.record.schema import TABLES
from moot.actors.record.store.store import Store
from moot.protocols.errors import RecordError
from moot.protocols.near_paths import near_path
from moot.protocols.regular_files import open_regular

_AT_ONCE = 8
_SHOWN = 8
_MADE_BY_OWNERS = frozenset({"journal", "parts", "owner.lock", "epochs.json"})
LOST_RUN_YAML = "its run.yaml is lost, and the rest of a run is there: restore it from a copy"
_VERIFIED: dict[Path, tuple[int, int, int]] = {}
"""Files whose checksum this process has verified, with size, modification time and checksum."""

_MOST_PARTS = 10_000


class Epoch(msgspec.Struct):
    """Epoch: one owner of the folder.

    Attributes:
        number: from 1.
        started_at: Unix time of its takeover.
        valid_bytes: segment lengths at its takeover: later additions do not count.
        parts: names of the committed rolls in a store at its takeover: other rolls of earlier owners do not count. None
            in a folder, whose earlier owners are dead.
        rolls: rolls with a flush log at its takeover that no earlier epoch names: their rows are in the segments in
            `valid_bytes`, or in a part. Empty in records of earlier versions.
    """

    number: int
    started_at: float
    valid_bytes: dict[str, Annotated[int, msgspec.Meta(ge=0)]]
    parts: list[str] | None = None
    rolls: list[str] = []


class Segment(NamedTuple):
    """Segment that no part has replaced.

    Attributes:
        path: its file.
        valid_bytes: length that counts; None for all.
        least_bytes: length that was flushed, and must be there; 0 if unknown, as in records of earlier versions.
    """

    path: Path
    valid_bytes: int | None = None
    least_bytes: int = 0


_PARTS: dict[Path, tuple[tuple[int, ...], Part]] = {}
"""Parts that this process has parsed, with what tells that a file is the same: writers replace a part's file whole."""


class RunFolder:
    """Folder of one run: its paths and files; reading needs no ownership.

    Args:
        path: the folder.
        store: receives a copy of every written file; None for a folder that is the record itself.
    """

    def __init__(self, path: str | Path, store: Store | None = None) -> None:
        self.path, self.store = Path(path), store
        self.journal = self.path / "journal"
        self.parts = self.path / "parts"

    def exists(self) -> bool:
        """Whether the folder has a run."""
        return (self.path / "run.yaml").is_file()

    def has_only_run_yaml(self) -> bool:
        """Whether nothing else of a run is there: then run.yaml may be a person's configuration."""
        return self.exists() and not any((self.path / name).exists() for name in (*_MADE_BY_OWNERS, *TABLES))

    def has_lost_run_yaml(self) -> bool:
        """Whether the folder has data of a run, but no run.yaml, which is written before them."""
        if (self.path / "run.yaml").exists():
            return False
        return any(True for place in (self.journal, self.parts) for _ in place.glob("e*"))

    def missing(self) -> str:
        """Error message for a folder without a run; for a folder of several runs, such as a server's, it lists them."""
        if self.has_lost_run_yaml():
            return f"{self.path}: {LOST_RUN_YAML}"
        names = sorted(file.parent.name for file in self.path.glob("*/run.yaml"))
        more = f"; name one of the runs in it: {', '.join(names[:_SHOWN])}" if names else "; name a run's folder"
        more = near_path(self.path, "run.yaml") or more
        return f"{self.path}: no run there (no run.yaml){more}{', ...' if len(names) > _SHOWN else ''}"

    def is_new(self) -> bool:
        """Whether the folder has only the files that its first owner creates on acquiring it. In a store: according to
        this copy.

        Raises:
            RecordError: the file of owners cannot be parsed.
        """
        others = [path for path in self.path.iterdir() if path.name not in _MADE_BY_OWNERS]
        return not others and [epoch.number for epoch in self.epochs()] == [1]

    def put(self, name: str, data: bytes) -> None:
        """Write a file atomically, see `write_whole`, and put it into the store.

        Raises:
            RecordError: it cannot be written.
        """
        write_whole(self.path / name, data)
        if self.store is not None:
            self.store.put(name, data)

    def put_all(self, files: Mapping[str, bytes]) -> None:
        """As `put` for several files, several at a time."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(self.put, files.keys(), files.values()))

    def get(self, name: str) -> bytes | None:
        """Current content of a file, whoever wrote it; None when it does not exist.

        Raises:
            RecordError: the store cannot be read.
        """
        if self.store is not None:
            return self.store.get(name)
        file = self.path / name
        return file_content(file) if file.exists() else None

    def remove(self) -> None:
        """Delete the whole record."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self.store is not None:
            self.store.delete_folder()

    def is_owned(self) -> bool:
        """Whether a live process owns the folder now."""
        try:
            with open_regular(self.path / "owner.lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def epochs(self) -> list[Epoch]:
        """All owners so far, oldest first.

        Raises:
            RecordError: the file of owners cannot be parsed.
        """
        file = self.path / "epochs.json"
        return read_file(file, list[Epoch]) if file.exists() else []

    def is_owned_by(self, epoch: int) -> bool:
        """Whether the owner with this number is the latest.

        Raises:
            RecordError: the store cannot be read or parsed.
        """
        epochs = decode_file(self.path / "epochs.json", self.get("epochs.json") or b"[]", list[Epoch])
        return bool(epochs) and epochs[-1].number == epoch

    def valid_bytes(self, epochs: Sequence[Epoch] | None = None) -> dict[str, int]:
        """Segments of older owners with their valid lengths, as `epochs` (None: those on file) say."""
        found: dict[str, int] = {}
        for epoch in self.epochs() if epochs is None else epochs:
            for name, size in epoch.valid_bytes.items():
                found.setdefault(name, size)
        return found

    def committed_parts(self) -> list[Part]:
        """All valid committed rolls, in order of name. Raises like `epochs`."""
        epochs = [epoch for epoch in self.epochs() if epoch.parts is not None]
        files = names_in(self.parts, ".json")
        wanted = (n for n in files if not _committed_too_late(n.removesuffix(".json"), epochs))
        return [self.part(self.parts / name) for name in wanted]

    def part(self, file: Path) -> Part:
        """Part of a file, which is parsed once per process as long as it stays the same. Raises like `decode_part`."""
        with reading(file):
            status = file.stat()
        seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        known = _PARTS.get(file)
        if known is not None and known[0] == seen:
            return known[1]
        if len(_PARTS) >= _MOST_PARTS:
            _PARTS.clear()
        part = decode_part(file)
        _PARTS[file] = (seen, part)
        return part

    def table_file(self, part: Part, table: str) -> Path:
        """Parquet file of a part's table; its checksum is verified once per process.

        Raises:
            RecordError: it is missing, or its checksum differs.
        """
        file = self.path / part.tables[table]
        wanted = part.checksums.get(table)
        try:
            status = file.stat()
            seen = (status.st_size, status.st_mtime_ns, wanted or 0)
            if wanted is not None and _VERIFIED.get(file) != seen:
                if checksum(file) != wanted:
                    raise RecordError(
                        f"{file} is damaged: its checksum is not the one it was written with. "
                        f"{repair_advice(self.path)}"
                    )
                _VERIFIED[file] = seen
        except OSError as error:
            raise RecordError(f"{file} cannot be read: {error.strerror}. {repair_advice(self.path)}") from error
        return file

    def segments(self, stream: str | None = None) -> Iterator[Segment]:
        """Segments that are there and that no part has replaced, oldest owner first. Readers take
        `completeness.complete_segments`, which also reports what is not there."""
        covered = self.covered()
        epochs = self.epochs()
        valid = self.valid_bytes(epochs)
        last = max((epoch.number for epoch in epochs), default=0)
        flushed: dict[str, Flushed | None] = {}
        for path in sorted(self.journal.glob("e*.arrows")):
            parsed = SEGMENT.fullmatch(path.name)
            if parsed is None or path.name in covered:
                continue
            epoch, _, _, of_stream = parsed.groups()
            if stream not in (None, of_stream):
                continue
            if int(epoch) < last and path.name not in valid:
                continue
            roll = roll_of(path.name)
            if roll not in flushed:
                flushed[roll] = last_flush(self.flush_log(roll))
            log, length = flushed[roll], valid.get(path.name)
            least = 0 if log is None else log.least().get(of_stream, 0) if length is None else length
            yield Segment(path, length, least)

    def covered(self) -> set[str]:
        """Names of the segments that parts have replaced. Raises like `epochs`."""
        return {name for part in self.committed_parts() for name in part.covers}

    def flush_log(self, roll: str) -> Path:
        """Path of a roll's flush log."""
        return self.parts / f"{roll}{SUFFIX}"

    def segment_path(self, epoch: int, writer: int, roll: int, stream: str) -> Path:
        """Path of a writer's segment."""
        return self.journal / segment_name(roll_name(epoch, writer, roll), stream)

    def next_roll(self, epoch: int, writer: int) -> int:
        """First roll number that a (re)started writer may use."""
        files = (file for place in (self.journal, self.parts) for file in place.glob(f"e{epoch:04d}-w{writer}-r*"))
        return max((int(found[1]) for file in files if (found := ROLL.match(file.name))), default=-1) + 1


def _committed_too_late(part: str, epochs: Sequence[Epoch]) -> bool:
    """Whether a part of an earlier owner was committed after the takeover by the next one."""
    parsed = OWNED.match(part)
    after = next((epoch for epoch in epochs if parsed is not None and epoch.number > int(parsed[1])), None)
    return after is not None and part not in (after.parts or ())
