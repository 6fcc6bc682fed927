"""A record that was damaged, or made to do harm: equal data or one clear error, and nothing is written elsewhere."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from damage import flipped
from hypothesis import given
from hypothesis import strategies as st
from journal_writer import new_run, session
from small_runs import sorted_rows

from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.files import encode_file
from moot.actors.record.folder import Epoch, RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.recorded_run import RecordedRun
from moot.actors.record.roll_files import Part
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.salvage import salvage
from moot.actors.record.schema import TABLES
from moot.actors.record.segments import read_segment
from moot.actors.record.store.deltas import Delta, encode_delta
from moot.actors.record.store.mirror import record_path
from moot.actors.record.tables import read_table
from moot.actors.record.verify import verify
from moot.deploy.results.run_info import read_run_info
from moot.protocols.errors import RecordError

Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of two committed debates, and of three in the segments of a killed process."""
    folder = new_run(tmp_path_factory.mktemp("written"))
    asyncio.run(session(folder, range(2)))
    asyncio.run(session(folder, range(2, 5), compact=False))
    return folder.path


@pytest.fixture
def run(written: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(written, tmp_path / "run"))


def rows_of(folder: Path) -> Rows:
    """Everything that is on record."""
    return {table: sorted_rows(folder, table) for table in TABLES}


def flip(file: Path, bit: int) -> None:
    """Change one bit of a file."""
    file.write_bytes(flipped(file.read_bytes(), bit))


def segment(run: Path, stream: str = "replies") -> Path:
    """The killed process's segment of a stream."""
    (found,) = (run / "journal").glob(f"*-{stream}.arrows")
    return found


def _is_part(found: Rows, whole: Rows) -> bool:
    """Whether nothing is there that was not written."""
    return all(row in whole[table] for table, rows in found.items() for row in rows)


@given(data=st.data())
def test_one_flipped_bit_is_an_error_or_changes_nothing(written: Path, data: Any) -> None:
    files = sorted(p for p in written.rglob("*") if p.suffix in (".arrows", ".parquet", ".json"))
    file = data.draw(st.sampled_from(files))
    bit = data.draw(st.integers(0, 8 * file.stat().st_size - 1))
    with tempfile.TemporaryDirectory() as place:
        copy = Path(shutil.copytree(written, Path(place) / "run"))
        flip(copy / file.relative_to(written), bit)
        found = _read(copy)
    if isinstance(found, RecordError):
        assert file.name in str(found)
        return
    assert found == rows_of(written)


def _read(folder: Path) -> Rows | RecordError:
    try:
        RecordedRun(folder)
        return rows_of(folder)
    except RecordError as error:
        return error


@pytest.mark.parametrize(
    "behind", [1, 5, 9, 13, 17, 300], ids=["marker", "length", "crc", "own crc", "begin", "payload"]
)
def test_a_flipped_bit_of_the_last_batch_is_no_torn_tail(behind: int, run: Path) -> None:
    damaged = segment(run)
    at = damaged.read_bytes().rfind(b"moot")
    flip(damaged, 8 * (at + behind))
    with pytest.raises(RecordError, match=f"{damaged.name}: damaged at byte {at}, to its end"):
        rows_of(run)
    assert salvage(RunFolder(run))
    assert verify(RunFolder(run)).faults == []


def test_an_older_owners_segment_that_was_cut_is_an_error(run: Path) -> None:
    owner = Ownership.acquire(RunFolder(run))
    owner.release()
    cut = segment(run)
    cut.write_bytes(cut.read_bytes()[:-100])
    for read in (lambda: rows_of(run), lambda: compact_leftovers(RunFolder(run), owner.epoch)):
        with pytest.raises(RecordError, match=f"{cut.name}.* are left of"):
            read()
    assert salvage(RunFolder(run))
    assert verify(RunFolder(run)).faults == []


def test_a_missing_segment_of_an_older_owner_is_detected(run: Path) -> None:
    Ownership.acquire(RunFolder(run)).release()
    gone = segment(run, "events")
    gone.unlink()
    (fault,) = verify(RunFolder(run)).faults
    assert gone.name in fault


@pytest.mark.parametrize("byte", [3000, 5000], ids=["schema", "batch"])
def test_salvage_keeps_what_is_whole_and_the_rest_is_debated_again(byte: int, run: Path) -> None:
    whole = rows_of(run)
    damaged = segment(run)
    before = damaged.read_bytes()
    flip(damaged, 8 * byte)
    changed = damaged.read_bytes()
    part = next((run / "turns").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-20])
    assert len(verify(RunFolder(run)).faults) == 2
    said = salvage(RunFolder(run))
    assert [line.partition(":")[0] for line in said[:2]] == [f"turns/{part.name}", f"journal/{damaged.name}"]
    assert (run / "damaged" / "journal" / damaged.name).read_bytes() == changed != before
    found = rows_of(run)
    assert _is_part(found, whole)
    assert 0 < len(found["turns"]) < len(whole["turns"])
    assert found["verdicts"] == whole["verdicts"]
    again = RunFolder(run)
    asyncio.run(session(again, range(5, 6)))
    assert len(rows_of(run)["verdicts"]) == 6


def test_a_part_whose_list_is_lost_is_neither_deleted_nor_paid_again(run: Path) -> None:
    whole = rows_of(run)
    (listed,) = (run / "parts").glob("*.json")
    listed.unlink()
    files = sorted(run.glob("*/*.parquet"))
    with pytest.raises(RecordError, match=listed.name):
        asyncio.run(session(RunFolder(run), range(5)))
    assert sorted(file for file in run.glob("*/*.parquet") if "rest" not in file.name) == files
    salvage(RunFolder(run))
    assert rows_of(run) == whole
    assert verify(RunFolder(run)).faults == []


def _unlog(run: Path) -> None:
    for log in (run / "parts").glob("*.flushes"):
        log.unlink()


def test_an_intact_record_has_no_faults(run: Path) -> None:
    found = verify(RunFolder(run))
    assert (found.faults, found.unchecked) == ([], 0)
    assert found.rows == {table: len(rows) for table, rows in rows_of(run).items()}


def test_a_verdict_without_its_case_is_found(run: Path) -> None:
    """In a record of an earlier version, where nothing states which segments there were."""
    _unlog(run)
    segment(run, "cases").unlink()
    assert any("`verdicts`" in fault and "`cases`" in fault for fault in verify(RunFolder(run)).faults)


def _names(**tables: str) -> Callable[[Path], bytes]:
    return lambda run: encode_file(Part({name: file.format(run.parent) for name, file in tables.items()}, []))


def _a_length_below_zero(run: Path) -> bytes:
    owners = RunFolder(run).epochs()
    owners[0].valid_bytes[segment(run).name] = -5
    return encode_file(owners)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("parts/e0001-w0-r0000.json", _names(turns="../../outside/autostart.parquet")),
        ("parts/e0001-w0-r0000.json", _names(turns="{}/outside/autostart.parquet")),
        ("parts/e0001-w0-r0000.json", _names(turns="verdicts/e0001-w0-r0000.parquet")),
        ("parts/e0001-w0-r0000.json", _names(**{"../turns": "../turns/e0001-w0-r0000.parquet"})),
        ("parts/e0001-w0-r0000.json", lambda run: b'{"tables":{},"covers":[],"more":' + b"[" * 100_000),
        ("epochs.json", lambda run: b"[" * 100_000),
        ("epochs.json", lambda run: b'[{"number":1,"started_at":0,"valid_bytes":{"\xf3":1}}]'),
        ("epochs.json", _a_length_below_zero),
    ],
)
def test_a_list_that_was_made_to_do_harm_is_an_error(name: str, content: Callable[[Path], bytes], run: Path) -> None:
    (run / name).write_bytes(content(run))
    with pytest.raises(RecordError, match=Path(name).name):
        rows_of(run)
    assert any(name in fault for fault in verify(RunFolder(run)).faults)


@pytest.mark.parametrize("link", ["owner.lock", "journal", "turns", "parts/.e0001.1.tmp", "damaged"])
def test_nothing_is_written_through_a_link_that_leads_out(link: str, run: Path, tmp_path: Path) -> None:
    victim = tmp_path / "outside"
    victim.mkdir()
    (victim / ".kept.tmp").write_text("mine")
    path = run / link
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(victim / ".kept.tmp" if path.suffix else victim)
    for write in (lambda: Ownership.acquire(RunFolder(run)), lambda: salvage(RunFolder(run))):
        with pytest.raises(RecordError, match="link"):
            write()
    assert [(file.name, file.read_text()) for file in victim.iterdir()] == [(".kept.tmp", "mine")]


def test_a_roll_whose_name_is_too_long_is_none(tmp_path: Path) -> None:
    copy = _bucket_copy(tmp_path, b"", f"e{'9' * 200}-w0-r0000")
    (copy / "journal" / "e0001-w0-r0000").mkdir()
    (copy / "journal" / "e0001-w0-r0000" / "begun").touch()
    (copy / "journal" / f"e{'9' * 200}-w0-r0000" / "000000.delta").write_bytes(
        encode_delta({f"e{'9' * 200}-w0-r0000-embeddings.arrows": (0, b"x" * 10)})
    )
    assert list((record_path(copy) / "journal").iterdir()) == []


def _bucket_copy(place: Path, delta: bytes, roll: str = "e0001-w0-r0000") -> Path:
    """Folder of an unfinished run in a bucket."""
    journal = place / "copy" / "journal" / roll
    journal.mkdir(parents=True)
    (place / "copy" / "run.yaml").write_text("schema_version: 1\n")
    (place / "copy" / "epochs.json").write_bytes(encode_file([Epoch(1, 1.0, {})]))
    (journal / "begun").touch()
    (journal / "000000.delta").write_bytes(delta)
    return place / "copy"


@pytest.mark.parametrize(
    "name",
    [
        "{place}/.bashrc",
        "../../../.bashrc",
        "e0001-w0-r0000-events.arrows/../../../../.bashrc",
        "e0002-w0-r0000-events.arrows",
        "evil.pth",
        "e0001-w0-r0000-nothing.arrows",
        "e0001-w0-r\u0660-events.arrows",
    ],
)
def test_a_delta_writes_to_segments_of_its_own_roll_only(name: str, tmp_path: Path) -> None:
    victim = tmp_path / ".bashrc"
    victim.write_text("mine\n")
    copy = _bucket_copy(tmp_path, encode_delta({name.format(place=tmp_path): (5, b"theirs\n")}))
    with pytest.raises(RecordError, match="no segment of its roll"):
        record_path(copy)
    assert victim.read_text() == "mine\n"


def _claims_a_terabyte(delta: bytes) -> bytes:
    honest = msgspec.msgpack.decode(delta, type=Delta)
    return msgspec.msgpack.encode(Delta(honest.crc, 2**40, honest.packed))


def _holds_another_shape(delta: bytes) -> bytes:
    packed = pa.compress(msgspec.msgpack.encode(["no", "mapping"]), "zstd", asbytes=True)
    return msgspec.msgpack.encode(Delta(crc32(packed), 12, packed))


@pytest.mark.parametrize("harm", [_claims_a_terabyte, _holds_another_shape, lambda delta: delta[:-3]])
def test_a_damaged_delta_before_the_last_is_an_error_and_takes_no_memory(
    harm: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    whole = encode_delta({"e0001-w0-r0000-events.arrows": (0, b"some")})
    copy = _bucket_copy(tmp_path, harm(whole))
    (copy / "journal" / "e0001-w0-r0000" / "000001.delta").write_bytes(whole)
    with pytest.raises(RecordError, match=r"000000\.delta is damaged"):
        record_path(copy)


@pytest.mark.parametrize("name", ["000000.delta", "sealed"])
def test_an_object_that_no_writer_put_takes_no_memory(name: str, tmp_path: Path) -> None:
    copy = _bucket_copy(tmp_path, encode_delta({}))
    with open(copy / "journal" / "e0001-w0-r0000" / name, "wb") as file:
        file.truncate(2**41)  # of which the disk holds nothing
    with pytest.raises(RecordError, match=rf"{name} is damaged"):
        record_path(copy)


def _as_deltas(run: Path, place: Path) -> Path:
    """The killed process's segments as a bucket holds them, each in three flushes."""
    pieces: list[dict[str, tuple[int, bytes]]] = [{}, {}, {}]
    for file in (run / "journal").glob("*.arrows"):
        raw = file.read_bytes()
        name = file.name.replace("e0002", "e0001")
        for number, piece in enumerate(pieces):
            start, end = (len(raw) * part // 3 for part in (number, number + 1))
            piece[name] = (start, raw[start:end])
    roll = "-".join(name.split("-")[:3])
    copy = _bucket_copy(place, b"", roll)
    for number, piece in enumerate(pieces):
        (copy / "journal" / roll / f"{number:06d}.delta").write_bytes(encode_delta(piece))
    return copy


def _damaged(draw: Any, raw: bytes) -> bytes:
    """Some bytes changed, cut off, put in or left out."""
    at = draw(st.integers(0, len(raw) - 1))
    junk = draw(st.binary(min_size=1, max_size=9))
    harmed: bytes = draw(
        st.sampled_from(
            [
                raw[:at] + bytes([raw[at] ^ 1 << junk[0] % 8]) + raw[at + 1 :],
                raw[:at],
                raw[:at] + junk + raw[at:],
                raw[:at] + junk + raw[at + len(junk) :],
                raw[:at] + raw[at + len(junk) :],
            ]
        )
    )
    return harmed


def test_a_flipped_bit_of_the_last_delta_is_no_torn_one(run: Path, tmp_path: Path) -> None:
    copy = _as_deltas(run, tmp_path / "bucket")
    last = max(copy.glob("journal/*/*.delta"))
    flip(last, 8 * 100)
    with pytest.raises(RecordError, match=f"{last.name} is damaged"):
        record_path(copy)


@given(data=st.data())
def test_damaged_deltas_are_an_error_or_change_nothing(written: Path, data: Any) -> None:
    with tempfile.TemporaryDirectory() as place:
        copy = _as_deltas(written, Path(place))
        whole = rows_of(record_path(copy))
        harmed = data.draw(st.sampled_from(sorted(copy.glob("journal/*/*.delta"))))
        before = harmed.read_bytes()
        harmed.write_bytes(_damaged(data.draw, before))
        again = Path(shutil.copytree(copy, Path(place) / "again"))
        try:
            found = rows_of(record_path(again))
        except RecordError:
            return
    assert found == whole


@given(data=st.data())
def test_an_unsealed_run_yaml_that_is_damaged_is_an_error_or_plain_data(data: Any) -> None:
    session = {"wall_s": 1.5, "unsettled": {"usd": 0.5}}
    settings = {"schema_version": 1, "seed": 3, "models": {"agent": ["a", "b"]}, "sessions": [session]}
    raw = yaml.safe_dump(settings | {"price_table": {"a": {"input": 0.5, "output": 1.0}}})
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "run.yaml"
        file.write_bytes(_damaged(data.draw, raw.encode()))
        for read in (lambda: read_run_yaml(RunFolder(place)), lambda: read_run_info(place)):
            with suppress(RecordError):
                read()


NEWER = ("aliases", "documents")
"""Columns of `cases` that came after there were records."""


def _age(run: Path) -> None:
    """Write a record as it was before there were checksums, flush logs and the newer columns."""
    _unlog(run)
    for file in (run / "journal").glob("*.arrows"):
        batches = [one.select([name for name in one.schema.names if name not in NEWER]) for one in read_segment(file)]
        file.unlink()  # the batches are mapped from it
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, batches[0].schema) as stream:
            for one in batches:
                stream.write_batch(one)
    for file in run.glob("*/*.parquet"):
        content = pq.read_table(file, partitioning=None)
        pq.write_table(content.select([name for name in content.column_names if name not in NEWER]), file)
    for file in (run / "epochs.json", *(run / "parts").glob("*.json")):
        said = msgspec.json.decode(file.read_bytes().partition(b"\n")[0])
        if isinstance(said, dict):
            del said["checksums"]
        file.write_bytes(msgspec.json.encode(said))
    (run / "run.yaml").write_text("test: true\n")


def test_a_record_without_checksums_and_newer_columns_is_read_and_resumed(run: Path) -> None:
    whole = rows_of(run)
    whole["cases"] = [row | dict.fromkeys(NEWER) for row in whole["cases"]]
    _age(run)
    assert rows_of(run) == whole
    assert read_table(run, "cases", ["documents"])["documents"].null_count == 5
    found = verify(RunFolder(run))
    assert (found.faults, found.files, found.unchecked > 5) == ([], 0, True)
    asyncio.run(session(RunFolder(run), range(5, 6)))
    assert _is_part(whole, again := rows_of(run))
    assert [row["documents"] for row in again["cases"]] == [None] * 5 + [[]]
    assert len(again["verdicts"]) == len(whole["verdicts"]) + 1
    assert verify(RunFolder(run)).faults == []
