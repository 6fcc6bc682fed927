"""A record in a store: what a crash, a fault or a late write leaves is read as it should be."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_writer import assert_whole, debated, submit_case
from pyarrow import ArrowNotImplementedError
from pyarrow.fs import LocalFileSystem
from stored_record import FailingStore, no_waiting, read_remotely, store_in, write

from moot.actors.record import journal
from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.files import encode_file
from moot.actors.record.folder import Epoch, RunFolder
from moot.actors.record.ownership import RecordOwner
from moot.actors.record.process_folder import LOCK
from moot.actors.record.record_writer import RecordWriter
from moot.actors.record.schema import TABLES
from moot.actors.record.store import uri as uris
from moot.actors.record.store.deltas import DeltaWriter, decode_delta, encode_delta, replay, rolls_of, seal
from moot.actors.record.store.lease import Holder
from moot.actors.record.store.mirror import Mirror, Scratch, record_path
from moot.actors.record.store.store import Store
from moot.actors.record.store.uri import below, is_uri, open_filesystem
from moot.actors.record.tables import read_table
from moot.protocols.errors import ConfigError, RecordError

DEBATES = 4
ALL = {f"c{number:03d}" for number in range(DEBATES)}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    no_waiting(monkeypatch)


def ids(folder: Path, table: str = "verdicts") -> set[str]:
    return set(read_table(folder, table, [])["case_id"].to_pylist())


async def begun(store: Store, epoch: int = 1) -> tuple[Mirror, RecordWriter]:
    """A life of an owner's writer, with its copy of the store."""
    mirror = Mirror(store)
    mirror.pull()
    writer = RecordWriter(RunFolder(mirror.folder, store), epoch)
    await writer.load()
    return mirror, writer


# --- objects ---


def test_objects_are_put_read_listed_and_deleted(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.put("a/one", b"1")
    store.put("a/b/two", b"22")
    (tmp_path / "file").write_bytes(b"333")
    store.put("three", tmp_path / "file")
    assert store.sizes() == {"a/b/two": 2, "a/one": 1, "three": 3}
    assert store.sizes("a") == {"a/b/two": 2, "a/one": 1}
    assert list(store.modified("a/b")) == ["a/b/two"]
    assert store.get("a/one") == b"1"
    assert store.get("a/none") is None
    assert store.modified_at("a/none") is None
    assert not store.get_file("none", tmp_path / "none")
    assert store.get_file("three", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"333"
    store.delete(["three", "none"])
    store.delete_folder("a")
    assert store.sizes() == {}


class EarlyVisibleFileSystem(LocalFileSystem):  # type: ignore[misc]
    """Objects are seen, empty, as soon as they are opened, as Azure's are."""

    type_name = "abfs"


def test_an_object_is_not_seen_before_it_is_whole(tmp_path: Path) -> None:
    store = Store(EarlyVisibleFileSystem(), str(tmp_path), "abfss://box/run")
    (tmp_path / "whole").write_bytes(b"data")
    seen = list[bytes | None]()

    def fill(stream: Any) -> None:
        stream.write(b"more")
        seen.append(store.get("one"))

    store._write("one", fill)
    assert (seen, store.get("one"), list(store.sizes())) == ([None], b"more", ["one", "whole"])


def test_a_store_that_cannot_rename_is_refused_in_one_line(tmp_path: Path) -> None:
    class Flat(EarlyVisibleFileSystem):
        """As an account without a hierarchical namespace."""

        def move(self, src: str, dest: str) -> None:
            raise ArrowNotImplementedError("not for\naccounts without a namespace")

    store = Store(Flat(), str(tmp_path), "abfss://box/run")
    with pytest.raises(RecordError, match="not for accounts"):
        store.put("one", b"1")
    assert store.sizes() == {}


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("s3://AKIAX:geheim@bucket/x", "a password"),
        ("s3://AKIAX@bucket/x", "an access key"),
        ("s3://bucket/x?access_key=geheim&region=eu", "access_key"),
        ("s3://bucket/x?secret_key=geheim", "secret_key"),
        ("s3://bucket/x?session_token=geheim", "session_token"),
        ("abfs://box:geheim@account.dfs.core.windows.net/x", "a password"),
        ("gs://bucket/x?access_token=geheim", "access_token"),
        ("s3://bucket/x?regoin=eu-west-1", "unknown option 'regoin'"),
        ("s3://bucket", "name a folder in a bucket"),
        ("ftp://host/x", "no filesystem for ftp://"),
    ],
)
def test_a_uri_that_cannot_be_used_is_refused_without_its_secrets(uri: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        open_filesystem(uri)
    assert "geheim" not in str(refused.value)
    assert "AKIAX" not in str(refused.value)


def test_a_bucket_of_googles_that_cannot_be_reached_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's own patience is fifteen minutes."""
    monkeypatch.setattr(uris, "_GS_PATIENCE_S", 0.1)
    monkeypatch.setattr("moot.actors.record.store.store._PAUSES_S", ())
    with pytest.raises(ConfigError, match="cannot be reached"):
        Store.of("gs://anonymous@bucket/x?endpoint_override=127.0.0.1:1&scheme=http").check()


def test_what_a_uri_is() -> None:
    assert not is_uri("file:///runs/x")
    assert below("s3://b/x/?region=eu", "y") == "s3://b/x/y?region=eu"
    with pytest.raises(ConfigError, match="as text"):
        is_uri(str(Path("s3://bucket/x")))
    with pytest.raises(ConfigError, match="three slashes"):
        record_path("file://host/x")


# --- deltas ---

ROLL = "e0001-w0-r0000"
SEGMENTS = [f"{ROLL}-{stream}.arrows" for stream in ("events", "cases", "verdicts")]
SEGMENT = SEGMENTS[0]


@given(
    flushes=st.lists(st.dictionaries(st.sampled_from(SEGMENTS), st.binary(max_size=30)), max_size=6),
    lost=st.integers(0, 8),
    harm=st.sampled_from(["gone", "torn", "none"]),
    held=st.integers(0, 6),
)
def test_deltas_give_back_what_was_appended_or_name_the_one_that_is_missing(
    flushes: list[dict[str, bytes]], lost: int, harm: str, held: int
) -> None:
    with tempfile.TemporaryDirectory() as made:
        store, here, there = store_in(Path(made) / "store"), Path(made) / "here", Path(made) / "there"
        here.mkdir()
        there.mkdir()
        writer, states = DeltaWriter(store, ROLL), list[dict[str, bytes]]()
        content: dict[str, bytes] = {}
        for flush in flushes:
            for name, data in flush.items():
                content[name] = content.get(name, b"") + data
                (here / name).write_bytes(content[name])
            writer.put(here / name for name in content)
            if any(flush.values()):
                states.append({name: data for name, data in content.items() if data})
        known = states[min(held, len(states)) - 1] if states and held else {}
        for name, data in known.items():  # a machine that has pulled before
            (there / name).write_bytes(data)
        at = f"journal/e0001-w0-r0000/{lost:06d}.delta"
        if harm != "none" and lost < len(states):
            data = store.get(at) or b""
            store.delete([at]) if harm == "gone" else store.put(at, data[: len(data) // 2])
            if harm == "torn" or lost + 1 < len(states):
                with pytest.raises(
                    RecordError, match=f"{lost:06d}.delta is {'damaged' if harm == 'torn' else 'missing'}"
                ):
                    replay(store, ROLL, rolls_of(store)[ROLL], there)
                return
            states = states[: max(lost, min(held, len(states)))]
        for roll, names in rolls_of(store).items():
            replay(store, roll, names, there)
        found = {path.name: path.read_bytes() for path in there.iterdir()}
        assert {name: data for name, data in found.items() if data} == (states[-1] if states else {})


def test_a_delta_that_was_changed_is_none() -> None:
    whole = encode_delta({"a": (3, b"bytes")})
    assert decode_delta(whole) == {"a": (3, b"bytes")}
    for harmed in (None, b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        assert decode_delta(harmed) is None


def test_what_a_sealed_roll_gets_later_does_not_count(tmp_path: Path) -> None:
    store, segment = store_in(tmp_path / "store"), tmp_path / SEGMENT
    late = DeltaWriter(store, ROLL)
    segment.write_bytes(b"early")
    late.put([segment])
    late.check()
    seal(store, rolls_of(store))
    segment.write_bytes(b"early and late")
    late.put([segment])
    seal(store, rolls_of(store))
    journal = tmp_path / "journal"
    journal.mkdir()
    for roll, names in rolls_of(store).items():
        replay(store, roll, names, journal)
    assert (journal / SEGMENT).read_bytes() == b"early"
    with pytest.raises(RecordError, match="another incarnation of this writer"):
        late.check()


def replayed(store: Store, sealed: bytes, journal: Path) -> int | str:
    """Deltas that count with this content of the seal, or the error."""
    store.put(f"journal/{ROLL}/sealed", sealed)
    shutil.rmtree(journal, ignore_errors=True)
    journal.mkdir()
    try:
        replay(store, ROLL, rolls_of(store)[ROLL], journal)
    except RecordError as error:
        return str(error)
    return (journal / SEGMENT).stat().st_size


def test_damage_of_a_seal_is_an_error(tmp_path: Path) -> None:
    store, segment, journal = store_in(tmp_path / "store"), tmp_path / SEGMENT, tmp_path / "journal"
    writer = DeltaWriter(store, ROLL)
    for number in range(12):
        segment.write_bytes(b"x" * (number + 1))
        writer.put([segment])
    seal(store, rolls_of(store))
    whole = store.get(f"journal/{ROLL}/sealed") or b""
    assert replayed(store, whole, journal) == 12
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            found = replayed(store, damaged, journal)
            assert found == 12 or "/sealed " in str(found), damaged
    assert replayed(store, b"5", journal) == 5, "as an earlier version wrote it"


# --- a whole record ---


def killed(store: Store) -> None:
    """As if the last owner had not gone in order."""
    owner = msgspec.json.decode(store.get("owner.json") or b"", type=Holder)
    store.put("owner.json", msgspec.json.encode(msgspec.structs.replace(owner, released=False)))


async def test_a_record_is_whole_after_a_crash_at_every_change(tmp_path: Path) -> None:
    counted = FailingStore(tmp_path / "counted", 10_000)
    assert await write(counted, 2) == ["c000", "c001"]
    assert counted.count > 15
    for changes in range(counted.count):
        place = tmp_path / f"store{changes}"
        durable = await write(FailingStore(place, changes), 2)
        before = read_remotely(store_in(place), tmp_path / f"before{changes}")
        paid = set()
        if (before / "run.yaml").exists():
            assert set(durable) <= ids(before)
            assert_whole(before)
            paid = set(read_table(before, "turns", ["reply_id"])["reply_id"].to_pylist())
        await write(store_in(place), 2)
        after = read_remotely(store_in(place), tmp_path / f"after{changes}")
        assert ids(after) == {"c000", "c001"}
        assert_whole(after)
        assert paid <= set(read_table(after, "turns", ["reply_id"])["reply_id"].to_pylist())
        left = {name.partition("/")[0] for name in store_in(place).sizes()}
        assert left <= {*TABLES, "parts", "run.yaml", "epochs.json", "owner.json"}, changes


async def test_a_copy_of_an_unfinished_run_is_read_with_its_deltas(tmp_path: Path) -> None:
    await write(store_in(tmp_path / "store"), 3, ends=False)
    assert ids(record_path(tmp_path / "store" / "run")) == {"c000", "c001", "c002"}


@pytest.mark.parametrize("lost", ["000000.delta", "000002.delta", "parts"])
async def test_an_object_that_is_lost_is_noticed(lost: str, tmp_path: Path) -> None:
    store = store_in(tmp_path / "store")
    await write(store, 3, ends=lost == "parts")
    names = [name for name in store.sizes() if (name.endswith(".json") if lost == "parts" else name.endswith(lost))]
    store.delete([name for name in names if name.startswith(("parts/", "journal/"))])
    with pytest.raises(RecordError, match="e0001-w0-r0000"):
        ids(read_remotely(store, tmp_path / "found"))
    with pytest.raises(RecordError, match="e0001-w0-r0000"):
        await write(store, 4)


async def test_a_writer_that_was_replaced_adds_nothing(tmp_path: Path) -> None:
    """The same owner's writer lives on where Ray thinks it dead: nothing that it flushes or compacts counts."""
    store = store_in(tmp_path / "store")
    await write(store, 1, ends=False)
    (_here, zombie), (_there, second) = [await begun(store) for _ in range(2)]
    await debated(zombie, [1], "zombie")
    await debated(second, [1], "second")
    with pytest.raises(RecordError, match="another incarnation of this writer"):
        await zombie.close()
    await second.close()
    found = read_remotely(store, tmp_path / "found")
    assert_whole(found)
    mine = [row["reply_id"] for row in read_table(found, "turns").to_pylist() if row["case_id"] == "c001"]
    assert sorted(mine) == ["second-c001-a", "second-c001-j"]


async def test_a_new_incarnation_of_a_writer_knows_what_counts_of_the_old_one(tmp_path: Path) -> None:
    """It has looked before the old one, which is out of reach and not dead, puts something more."""
    store = store_in(tmp_path / "store")
    await write(store, 1, ends=False)
    _here, old = await begun(store)
    there = Mirror(store)
    there.pull()
    await debated(old, [1], "old")
    new = RecordWriter(RunFolder(there.folder, store), 1)
    await new.load()
    assert new.progress.counts.finished == 2
    assert ids(there.folder) == ids(read_remotely(store, tmp_path / "found")) == {"c000", "c001"}
    for incarnation in (old, new):
        await incarnation.close(compact=False)


async def test_what_a_killed_owner_and_a_killed_writer_have_left_becomes_two_parts(tmp_path: Path) -> None:
    """One at the take-over, one at the end, by the same owner: the second takes nothing of the first away."""
    store = store_in(tmp_path / "store")
    await write(store, 2, ends=False)
    killed(store)
    mirror = Mirror(store)
    record = RunFolder(mirror.folder, store)

    async def work(epoch: int) -> None:
        for number, ends in ((2, False), (3, True)):  # the first life of the writer is killed
            _copy, incarnation = await begun(store, epoch)
            await debated(incarnation, [number], f"life{number}")
            await incarnation.close(compact=ends)
        mirror.pull()
        compact_leftovers(record, epoch)

    await (await RecordOwner.acquire(record)).run(work)
    found = read_remotely(store, tmp_path / "found")
    assert ids(found) == ALL
    assert_whole(found)
    assert [name for name in store.sizes("parts") if "rest" in name] == [
        "parts/e0002-rest0.json",
        "parts/e0002-rest1.json",
    ]


async def test_what_an_owner_before_uploads_late_does_not_count(tmp_path: Path) -> None:
    """Deltas, a part and a deleted journal of somebody whose lease has ended."""
    store, late = store_in(tmp_path / "store"), store_in(tmp_path / "store")
    await write(store, 1, ends=False)
    _here, zombie = await begun(late)
    await submit_case(zombie, 1, "early")
    await zombie.flush()
    killed(store)
    assert await write(store, 3, ends=False) == ["c001", "c002"]
    await submit_case(zombie, 3, "late")
    await zombie.flush()
    late.put("parts/e0001-w0-r0001.json", b'{"tables": {}, "covers": ["e0001-w0-r0001-replies.arrows"]}')
    late.delete_folder("journal/e0001-w0-r0001")
    with pytest.raises(RecordError, match="taken it over"):
        await zombie.close()
    found = read_remotely(store, tmp_path / "found")
    assert_whole(found)
    assert ids(found) == {"c000", "c001", "c002"}
    turns = {row["reply_id"] for row in read_table(found, "turns", ["reply_id"]).to_pylist()}
    assert {"early-c001-a", "early-c001-j"} <= turns
    assert not {"late-c003-a", "late-c003-j"} & turns
    assert await write(store, DEBATES) == ["c003"]


async def test_a_flush_is_one_object_and_a_question_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "FLUSH_S", 60.0)
    store = FailingStore(tmp_path / "store", 10_000)
    store.put("run.yaml", b"schema_version: 4\n")
    store.put("epochs.json", encode_file([Epoch(1, 1.0, {})]))
    _here, writer = await begun(store)
    before = store.count
    await submit_case(writer, 0)
    (history,) = await writer.history([("c000", 0)])
    assert len(history.replies) == 2
    assert store.count == before
    await writer.flush()
    await writer.flush()
    assert store.count == before + 1
    await writer.close(compact=False)


# --- scratch folders ---


def test_scratch_folders_go_with_their_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = tmp_path / "moot-scratch-dead"
    dead.mkdir()
    with open(dead / LOCK, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        kept, removed, forgotten = Scratch(), Scratch(), Scratch()
        assert dead.exists()
    removed.remove()
    del forgotten
    again = Scratch()
    assert sorted(tmp_path.iterdir()) == sorted([kept.path, again.path])
