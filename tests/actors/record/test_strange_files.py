"""Records with pipes, folders or links in place of files, with huge files, and with small files of huge tables."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from journal_writer import new_run, session

from moot.actors.record import parts
from moot.actors.record.files import checksum, encode_file
from moot.actors.record.folder import RunFolder
from moot.actors.record.follow import RecordFollower
from moot.actors.record.ownership import Ownership
from moot.actors.record.recorded_run import RecordedRun
from moot.actors.record.roll_files import Part, decode_part
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import TABLES
from moot.actors.record.segments import has_checksums, read_segment
from moot.actors.record.tables import read_table
from moot.actors.record.verify import verify
from moot.protocols.errors import RecordError


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record with a part and with segments."""
    folder = new_run(tmp_path_factory.mktemp("written"))
    asyncio.run(session(folder, range(2)))
    asyncio.run(session(folder, range(2, 3), compact=False))
    return folder.path


@pytest.fixture
def run(written: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(written, tmp_path / "run"))


FILES = ("run.yaml", "epochs.json", "parts/*.json", "turns/*.parquet", "journal/*-replies.arrows")


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _link_to_a_pipe(file: Path) -> None:
    os.mkfifo(file.with_name("pipe"))
    file.symlink_to("pipe")


def _huge(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.truncate(3 * 2**30)


def _errors(run: Path) -> Iterator[str]:
    """What each reader says."""
    folder = RunFolder(run)
    readers: list[Callable[[], Any]] = [
        lambda: read_run_yaml(folder),
        lambda: [read_table(folder, table) for table in TABLES],
        lambda: RecordedRun(run),
        lambda: _followed(folder),
        lambda: Ownership.acquire(folder).release(),
    ]
    for read in readers:
        try:
            read()
        except RecordError as error:
            yield str(error)
    yield from verify(folder).faults if folder.exists() else ()


def _followed(folder: RunFolder) -> None:
    columns = {"turns": ["role"], "events": ["data"], "verdicts": ["how"]}
    with closing(RecordFollower(folder, columns)) as follower:
        list(follower.read())


@pytest.mark.parametrize(
    ("name", "make"),
    [
        *((name, make) for name in FILES for make in (_pipe, os.mkdir, _link_to_a_pipe)),
        *((name, _huge) for name in FILES[:3]),
    ],
)
def test_every_reader_ends_and_names_the_file(run: Path, name: str, make: Callable[[Path], None]) -> None:
    (file,) = run.glob(name)
    file.unlink()
    make(file)
    errors = list(_errors(run))
    assert any(file.name in error or "no run" in error for error in errors), errors


def test_a_pipe_for_a_lock_is_no_owner(run: Path) -> None:
    (run / "owner.lock").unlink()
    os.mkfifo(run / "owner.lock")
    assert not RunFolder(run).is_owned()
    with pytest.raises(RecordError, match=r"owner\.lock"):
        Ownership.acquire(RunFolder(run))


def _replaced(run: Path, rows: pa.Table, **options: Any) -> Path:
    """Put rows into the part of turns, listed with its checksum."""
    (listed,) = (run / "parts").glob("*.json")
    part = decode_part(listed)
    file = run / part.tables["turns"]
    pq.write_table(rows, file, compression="zstd", write_page_checksum=True, **options)
    listed.write_bytes(encode_file(Part(part.tables, part.covers, {**part.checksums, "turns": checksum(file)})))
    return file


def _repeated(turns: pa.Table, text: str, rows: int) -> pa.Table:
    """A turn many times, with a text that is one category."""
    categories = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    place = turns.column_names.index("text")
    return turns.take(pa.array(np.zeros(rows, np.int64))).set_column(place, "text", categories)


def test_a_table_that_is_far_larger_than_its_part_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = parts.read_part(next((run / "turns").glob("*.parquet")), TABLES["turns"].names)
    monkeypatch.setattr(parts, "_MOST_BYTES", 2 * 2**20)
    monkeypatch.setattr(parts, "_MOST_TIMES", 10)
    large: list[tuple[pa.Table, dict[str, Any]]] = [
        (_repeated(turns, "a" * 2**18, 50), {}),
        (_repeated(turns, "a" * 2**18, 50), {"row_group_size": 1}),
        (_repeated(turns, "a" * 2**18, 50).cast(turns.schema), {"use_dictionary": False}),
        (_repeated(turns, "", 300_000).select(["case_id", "attempt"]), {}),
    ]
    for rows, options in large:
        file = _replaced(run, rows, **options)
        with pytest.raises(RecordError, match=r"takes more than . MiB") as refused:
            read_table(run, "turns")
        assert str(file) in str(refused.value)
        assert any("takes more than" in fault for fault in verify(RunFolder(run)).faults)


def test_prefixes_are_refused(run: Path) -> None:
    turns = parts.read_part(next((run / "turns").glob("*.parquet")), TABLES["turns"].names)
    _replaced(run, turns, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
    with pytest.raises(RecordError, match="delta-encoded"):
        read_table(run, "turns")


def test_a_compressed_batch_of_a_segment_is_refused(run: Path) -> None:
    (file,) = (run / "journal").glob("*-replies.arrows")
    (batch, *_) = read_segment(file)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    draft = file.with_name("draft")
    with pa.ipc.new_stream(str(draft), batch.schema, options=options) as writer:  # as an earlier version wrote it
        writer.write_batch(batch)
    os.replace(draft, file)
    assert not has_checksums(file)
    assert list(read_segment(file)) == []
