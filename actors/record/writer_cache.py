"""Cache of a record writer: evicted open debates, recent results, and the row groups of each case.

It can be rebuilt from the record: a miss is read there.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from moot.actors.record.debate_result import DebateResult
from moot.actors.record.open_debate import OpenDebate
from moot.actors.record.parts import Groups, open_part
from moot.actors.record.schema import CaseKey
from moot.actors.record.signals import array_as_plain, plain_as_array
from moot.protocols.errors import RecordError

_MOST_RESULTS, _MOST_BYTES = 10_000, 64 * 2**10
_INSERTED_TOGETHER = 1_000
_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16384;
CREATE TABLE debates (case_id TEXT, attempt INTEGER, noted BLOB, PRIMARY KEY (case_id, attempt));
CREATE TABLE results (number INTEGER PRIMARY KEY AUTOINCREMENT, case_id TEXT UNIQUE, result BLOB);
CREATE TABLE places (file INTEGER, hash INTEGER, row_group INTEGER, PRIMARY KEY (file, hash, row_group)) WITHOUT ROWID;
"""


class WriterCache:
    """SQLite cache of one writer; thread-safe.

    It is SQLite's own temporary file: on a disk of this machine, never in the run's folder, which several machines may
    share. It is removed with the process; its page cache takes 16 MiB of memory.

    Args:
        most_results: most results kept; the latest win.
    """

    def __init__(self, most_results: int = _MOST_RESULTS) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(_TABLES)
        weakref.finalize(self, self._database.close)
        self._using = threading.Lock()
        self._most_results = most_results
        self._debates = 0
        self._files: dict[Path, int] = {}

    def _query(self, query: str, values: Iterable[Any]) -> list[Any]:
        with self._using:
            try:
                return self._database.execute(query, tuple(values)).fetchall()
            except sqlite3.Error as error:
                raise RecordError(f"a writer's temporary file cannot be used: {error}") from error

    def put_debate(self, key: CaseKey, debate: OpenDebate) -> None:
        """Keep an open debate until `pop_debate`.

        Raises:
            RecordError: the disk is full, as in all methods.
        """
        raw = msgspec.msgpack.encode(debate, enc_hook=array_as_plain)
        self._query("INSERT OR REPLACE INTO debates VALUES (?, ?, ?)", (*key, raw))
        self._debates += 1

    def attempts(self, case_id: str) -> list[int]:
        """Attempts at a case whose open debates are kept here."""
        if not self._debates:
            return []
        return [attempt for (attempt,) in self._query("SELECT attempt FROM debates WHERE case_id = ?", (case_id,))]

    def pop_debate(self, key: CaseKey) -> OpenDebate | None:
        """Remove and return an open debate; None on a miss."""
        if not self._debates:
            return None
        found = self._query("SELECT noted FROM debates WHERE case_id = ? AND attempt = ?", key)
        if not found:
            return None
        self._query("DELETE FROM debates WHERE case_id = ? AND attempt = ?", key)
        self._debates -= 1
        return msgspec.msgpack.decode(found[0][0], type=OpenDebate, dec_hook=plain_as_array)

    def put_result(self, result: DebateResult) -> None:
        """Keep the result of the latest attempt at a case, replacing an earlier one."""
        raw = msgspec.msgpack.encode(result)
        case_id = result.case_id
        self._query("DELETE FROM results WHERE case_id = ?", (case_id,))
        if len(raw) <= _MOST_BYTES:
            self._query("INSERT INTO results (case_id, result) VALUES (?, ?)", (case_id, raw))
            self._query("DELETE FROM results WHERE number <= last_insert_rowid() - ?", (self._most_results,))

    def results(self, case_ids: Iterable[str]) -> dict[str, DebateResult]:
        """Cached results by case; misses are left out."""
        found = {}
        for case_id in case_ids:
            for (raw,) in self._query("SELECT result FROM results WHERE case_id = ?", (case_id,)):
                found[case_id] = msgspec.msgpack.decode(raw, type=DebateResult)
        return found

    def groups_of(self, case_ids: Iterable[str]) -> Groups:
        """Row groups of committed parts that may have rows of these cases. Parts never change: each is scanned once,
        and only for its case ids."""
        wanted = {hash(case_id) for case_id in case_ids}
        query = "SELECT row_group FROM places WHERE file = ? AND hash = ?"

        def groups(file: Path) -> list[int]:
            if file not in self._files:
                self._index_file(file)
            number = self._files[file]
            return sorted({group for one in wanted for (group,) in self._query(query, (number, one))})

        return groups

    def _index_file(self, file: Path) -> None:
        """Index each row group's cases by the hash of their ids: a collision costs only an unneeded read."""
        number = len(self._files)
        with open_part(file) as part:
            for group in range(part.groups):
                hashes = [hash(case_id) for case_id in part.categories("case_id", group).to_pylist()]
                for first in range(0, len(hashes), _INSERTED_TOGETHER):  # the event loop waits for the database too
                    some = hashes[first : first + _INSERTED_TOGETHER]
                    with self._using:
                        rows = [(number, one, group) for one in some]
                        self._database.executemany("INSERT OR IGNORE INTO places VALUES (?, ?, ?)", rows)
        self._files[file] = number
