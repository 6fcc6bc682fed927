"""Accepted requests on a failing disk: any flipped bit and any cut leaves them equal, or names what is lost."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from server_client import CASE, SLOW, pending, served

from moot.actors.record.frames import frame_header
from moot.deploy.service import inbox_files, inbox_store, request_queue
from moot.deploy.service.inbox_store import InboxStore, StoredRequest, WantedChange
from moot.deploy.service.request_queue import Key
from moot.deploy.service.verify_inbox import verify_inbox
from moot.protocols.errors import RecordError

State = dict[Key, StoredRequest]
IDS = [f"q{number}" for number in range(6)]
FILES = ("requests.log", "ids.log", "owner.lock")


def body(case_id: str) -> bytes:
    return b'{"question": "is %s a prime?"}' % case_id.encode()


def key(case_id: str, kind: str = "debates") -> Key:
    return Key(kind, case_id)


def fill(store: InboxStore) -> None:
    """Accept requests of two kinds; some end, some are cancelled, one is asked again."""
    for case_id in IDS:
        store.commit([WantedChange("accept", key(case_id), body(case_id))])
    store.commit([WantedChange("accept", key("q0", "checks"), body("c0")), WantedChange("end", key("q1"))])
    store.commit([WantedChange("cancel", key("q2")), WantedChange("cancel", key("q3"))])
    store.commit([WantedChange("accept", key("q3"), body("again")), WantedChange("end", key("unknown"))])


def state_of(store: InboxStore) -> State:
    keys = [key(case_id) for case_id in [*IDS, "unknown"]] + [key("q0", "checks")]
    return {each: found for each in keys if (found := store.find(each)) is not None}


def reopened(server: Path) -> tuple[State, bool]:
    """State after a restart, and whether ids were lost."""
    store = InboxStore(server / "inbox")
    try:
        return state_of(store), store.lost_ids
    finally:
        store.close()


@pytest.fixture(params=["killed", "rewritten"])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of a server that is no more."""
    monkeypatch.setattr(inbox_files, "_GROWTH_BYTES", 50)
    for sync in ("fsync", "fdatasync"):
        monkeypatch.setattr(f"moot.deploy.service.inbox_files.os.{sync}", lambda _: None)
    store = InboxStore(tmp_path / "writing" / "inbox")
    fill(store)
    if request.param == "rewritten":
        store._rewrite()
    copied = shutil.copytree(tmp_path / "writing", tmp_path / "server")
    store.close()  # which writes nothing
    for name in FILES:
        assert (copied / "inbox" / name).read_bytes() == (tmp_path / "writing" / "inbox" / name).read_bytes()
    return copied


def damages(content: bytes) -> Iterator[bytes]:
    """The content with a bit flipped in every second byte, and cut at every fifth."""
    for at in range(0, len(content), 2):
        yield content[:at] + bytes([content[at] ^ 1 << at // 2 % 8]) + content[at + 1 :]
    for at in range(0, len(content), 5):
        yield content[:at]


def test_each_flipped_bit_and_each_cut_leaves_all_or_names_what_is_lost(server: Path) -> None:
    contents = {name: (server / "inbox" / name).read_bytes() for name in FILES}
    whole, _ = reopened(server)
    assert whole[key("q3")] == ("pending", body("again"))
    assert whole[key("q2")] == ("cancelled", b"")
    assert whole.keys() == {key(each) for each in IDS if each != "q1"} | {key("q0", "checks")}
    for name, content in contents.items():
        for number, damaged in enumerate(damages(content)):
            for each, of_each in contents.items():
                (server / "inbox" / each).write_bytes(of_each)
            (server / "inbox" / name).write_bytes(damaged)
            report = verify_inbox(server)
            state, lost_ids = reopened(server)
            lost = [each for each, (stands, _) in state.items() if stands == "lost"]
            assert (state | {each: whole[each] for each in lost}, lost_ids) == (whole, False), (name, number)
            assert sum(fault.endswith("is lost") for fault in report.faults) == len(lost), (name, number)
            assert not lost or name == "requests.log"
            if lost:
                assert reopened(server) == (state, False), (name, number)
                report = verify_inbox(server)
                assert (report.faults, sorted(report.lost)) == ([], sorted(lost)), (name, number)


@pytest.mark.parametrize("name", ["requests.log", "ids.log"])
def test_a_file_that_is_not_there_is_a_fault(name: str, server: Path) -> None:
    (server / "inbox" / name).unlink()
    assert any(f"{name} is missing" in fault for fault in verify_inbox(server).faults)
    reopened(server)
    assert verify_inbox(server).faults == []


def test_what_both_files_have_lost_is_noticed(server: Path) -> None:
    for name in ("requests.log", "ids.log"):
        file = server / "inbox" / name
        content = file.read_bytes()
        at = content.index(b'"q4"')
        file.write_bytes(content[:at] + b"#" + content[at + 1 :])
    assert [fault[-9:] for fault in verify_inbox(server).faults[2:]] == ["their ids"]
    for _ in range(2):
        state, lost_ids = reopened(server)
        assert (key("q4") in state, lost_ids) == (False, True)
    assert (verify_inbox(server).faults, verify_inbox(server).lost_ids) == ([], True)


def test_damage_while_the_server_runs_is_noticed_on_reading(tmp_path: Path) -> None:
    store = InboxStore(tmp_path / "inbox")
    fill(store)
    file = tmp_path / "inbox" / "requests.log"
    file.write_bytes(file.read_bytes().replace(b"is q4", b"is q5"))
    assert store.find(key("q4")) == ("lost", b"")
    assert store.lost("debates") == 1
    store._rewrite()
    store.commit([WantedChange("accept", key("q4"), body("q4"))])
    assert (store.find(key("q4")), store.lost("debates")) == (("pending", body("q4")), 0)
    store.close()


@pytest.mark.parametrize("line", [b'["Change",1,"accept","debates","\xff"]', b"[" * 4000, b'["Change",1]', b"\xff"])
def test_a_frame_with_a_right_checksum_and_no_change_is_damage(line: bytes, tmp_path: Path) -> None:
    store = InboxStore(tmp_path / "inbox")
    fill(store)
    payload = line + b"\n"
    entry = store._queue.entries[key("q4")]
    assert entry.span is not None
    file = tmp_path / "inbox" / "requests.log"
    whole = file.read_bytes()
    frame = frame_header(payload) + payload
    if len(frame) < entry.span.length:
        with file.open("r+b") as content:
            content.seek(entry.span.at)
            content.write(frame)
        assert store.find(key("q4")) == ("lost", b"")
    store.close()
    file.write_bytes(whole[: entry.span.at] + frame + whole[entry.span.at + entry.span.length :])
    assert verify_inbox(tmp_path).faults[1:] == [f"{tmp_path / 'inbox'}: the accepted request debates/q4 is lost"]
    state, lost_ids = reopened(tmp_path)
    assert (state[key("q4")], state[key("q5")], lost_ids) == (("lost", b""), ("pending", body("q5")), False)


def test_a_closed_inbox_says_so(tmp_path: Path) -> None:
    store = InboxStore(tmp_path / "inbox")
    fill(store)
    store.close()
    with pytest.raises(RecordError, match="is not open"):
        store.find(key("q4"))
    with pytest.raises(RecordError, match="is not open"):
        store.commit([WantedChange("accept", key("q9"), body("q9"))])


def test_the_files_shrink_when_requests_have_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_store, "_SPARE_BYTES", 5000)
    monkeypatch.setattr(inbox_files, "_GROWTH_BYTES", 300)
    store = InboxStore(tmp_path / "inbox")
    fill(store)
    whole, sizes = state_of(store), set[int]()
    for number in range(200):
        store.commit([WantedChange("accept", key(f"n{number}"), b"x" * 100)])
        store.commit([WantedChange("end", key(f"n{number}"))])
        sizes.add(sum(file.stat().st_size for file in (tmp_path / "inbox").iterdir()))
    assert (state_of(store), max(sizes) < 30_000) == (whole, True)
    store.close()
    assert reopened(tmp_path) == (whole, False)


@pytest.mark.parametrize("replaced", [0, 1, 2])
def test_a_kill_while_the_files_are_rewritten_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: int
) -> None:
    store = InboxStore(tmp_path / "server" / "inbox")
    fill(store)
    whole = state_of(store)
    written, left = inbox_files.write_draft, [replaced]

    def killed(path: Path, frames: Iterator[bytes]) -> Callable[[], int]:
        replace = written(path, frames)

        def maybe() -> int:
            left[0] -= 1
            if left[0] < 0:
                shutil.copytree(tmp_path / "server", tmp_path / "killed", dirs_exist_ok=True)
            return replace()

        return maybe

    monkeypatch.setattr(inbox_store, "write_draft", killed)
    store._rewrite()
    store.close()
    if replaced == 2:
        shutil.copytree(tmp_path / "server", tmp_path / "killed")
    assert verify_inbox(tmp_path / "killed").faults == []
    assert reopened(tmp_path / "killed") == (whole, False)


def test_a_failed_write_stores_nothing_and_a_later_one_may_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = InboxStore(tmp_path / "inbox")
    fill(store)
    whole = state_of(store)

    def fails(_: int) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("moot.deploy.service.inbox_files.os.fdatasync", fails)
        with pytest.raises(OSError, match="full"):
            store.commit([WantedChange("accept", key("q1"), b"x" * 1000), WantedChange("end", key("q5"))])
    assert state_of(store) == whole
    store.commit([WantedChange("end", key("q0"))])
    store.close()
    assert reopened(tmp_path) == ({each: found for each, found in whole.items() if each != key("q0")}, False)


def test_the_last_cancelled_ones_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "MAX_CANCELLED", 2)
    store = InboxStore(tmp_path / "inbox")
    for case_id in IDS[:5]:
        for kind in ("debates", "checks"):
            store.commit([WantedChange("accept", key(case_id, kind), b"{}")])
    store.commit([WantedChange("cancel", key("q0", "checks"))])
    for case_id in IDS[:4]:
        store.commit([WantedChange("cancel", key(case_id))])
    whole = state_of(store)
    assert {each: state for each, (state, _) in whole.items()} == {
        key("q2"): "cancelled", key("q3"): "cancelled", key("q4"): "pending", key("q0", "checks"): "cancelled",
    }  # fmt: skip
    store.close()
    assert reopened(tmp_path) == (whole, False)


def test_an_inbox_has_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_store, "_BUSY_S", 0.0)
    store = InboxStore(tmp_path / "inbox")
    with pytest.raises(RecordError, match="another server"):
        InboxStore(tmp_path / "inbox")
    store.close()
    InboxStore(tmp_path / "inbox").close()


def earlier(folder: Path, rows: int = 40) -> Path:
    """Inbox of an earlier version, whose server was killed."""
    with closing(sqlite3.connect(folder / "writing.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "CREATE TABLE requests (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, "
            "cancelled INTEGER NOT NULL, body BLOB, UNIQUE (kind, id))"
        )
        for number in range(rows):
            values = ("debates", f"q{number}", number == 1, None if number == 1 else body(f"q{number}") + b" " * 500)
            connection.execute("INSERT INTO requests (kind, id, cancelled, body) VALUES (?, ?, ?, ?)", values)
        shutil.copyfile(folder / "writing.sqlite", folder / "inbox.sqlite")
        shutil.copyfile(folder / "writing.sqlite-wal", folder / "inbox.sqlite-wal")
    return folder / "inbox.sqlite"


def test_an_inbox_of_an_earlier_version_is_taken_over(tmp_path: Path) -> None:
    file = earlier(tmp_path)
    assert verify_inbox(tmp_path).unchecked == 1
    for _ in range(2):
        state, lost_ids = reopened(tmp_path)
        assert (state[key("q0")][0], state[key("q1")], lost_ids) == ("pending", ("cancelled", b""), False)
        assert not file.exists()
        assert verify_inbox(tmp_path).requests == {"pending": 39, "cancelled": 1}


def test_a_damaged_inbox_of_an_earlier_version_is_kept_and_said(tmp_path: Path) -> None:
    file = earlier(tmp_path)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    content[3 * 4096 : 3 * 4096 + 8] = b"\xff" * 8
    file.write_bytes(content)
    _, lost_ids = reopened(tmp_path)
    assert lost_ids
    assert (tmp_path / "inbox" / "damaged" / "inbox.sqlite").exists()


async def test_a_lost_request_is_answered_with_an_error_until_it_is_sent_again(tmp_path: Path) -> None:
    async with served(tmp_path, debates=SLOW) as client:
        for case_id in ("one", "two"):
            assert (await client.post("/v1/debates", {**CASE, "id": case_id})).status == 202
    file = tmp_path / "inbox" / "requests.log"
    content = file.read_bytes()
    at = content.index(b"seven")
    file.write_bytes(content[:at] + b"S" + content[at + 1 :])
    async with served(tmp_path, debates=SLOW) as client:
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/events")):
            answer = await client.ask(method, f"/v1/debates/one{path}")
            assert (answer.status, answer.code) == (410, "lost")
        assert (await client.get("/v1/debates/three")).status == 404
        assert (await client.get("/v1/stats")).json["debates"]["lost"] == 1
        assert await pending(client) == ["two"]
        assert (await client.post("/v1/debates", {**CASE, "id": "one"})).status == 202
        assert (await client.get("/v1/stats")).json["debates"]["lost"] == 0
        client.services._inbox._store.lost_ids = True
        answer = await client.get("/v1/debates/three")
        assert (answer.status, answer.code) == (410, "perhaps_lost")
