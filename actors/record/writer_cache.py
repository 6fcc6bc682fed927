"""What a writer remembers beside its journal: open debates that left its mind, recent endings, where cases' rows lie.

It is a cache that can be made again from the record: what it does not answer is read there.
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
from moot.actors.record.parts import Groups, open_parquet
from moot.actors.record.schema import CaseKey
from moot.actors.record.signals import array_as_plain, plain_as_array
from moot.protocols.errors import RecordError

_MOST_ENDINGS, _MOST_BYTES = 10_000, 64 * 2**10
_INSERTED_TOGETHER = 1_000
_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16384;
CREATE TABLE debates (case_id TEXT, attempt INTEGER, noted BLOB, PRIMARY KEY (case_id, attempt));
CREATE TABLE endings (number INTEGER PRIMARY KEY AUTOINCREMENT, case_id TEXT UNIQUE, ended BLOB);
CREATE TABLE places (file INTEGER, hash INTEGER, row_group INTEGER, PRIMARY KEY (file, hash, row_group)) WITHOUT ROWID;
"""


class WriterCache:
    """An SQLite database of one writer; several threads may use it.

    It is SQLite's own temporary file: on a disk of this machine, never in the run's folder, which several machines may
    share. It is gone with the process, and no larger than its cache of 16 MiB in memory.

    Args:
        most_endings: so many are kept, the last ones.
    """

    def __init__(self, most_endings: int = _MOST_ENDINGS) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(_TABLES)
        weakref.finalize(self, self._database.close)
        self._using = threading.Lock()
        self._most_endings = most_endings
        self._debates = 0
        self._files: dict[Path, int] = {}

    def _query(self, query: str, values: Iterable[Any]) -> list[Any]:
        with self._using:
            try:
                return self._database.execute(query, tuple(values)).fetchall()
            except sqlite3.Error as error:
                raise RecordError(f"a writer's temporary file cannot be used: {error}") from error

    def put_debate(self, key: CaseKey, debate: OpenDebate) -> None:
        """Keep an open debate until it is taken.

        Raises:
            RecordError: there is no room for it, as in all methods.
        """
        raw = msgspec.msgpack.encode(debate, enc_hook=array_as_plain)
        self._query("INSERT OR REPLACE INTO debates VALUES (?, ?, ?)", (*key, raw))
        self._debates += 1

    def pop_debate(self, key: CaseKey) -> OpenDebate | None:
        """A debate that was kept here, which it is no longer; None when it was not."""
        if not self._debates:
            return None
        found = self._query("SELECT noted FROM debates WHERE case_id = ? AND attempt = ?", key)
        if not found:
            return None
        self._query("DELETE FROM debates WHERE case_id = ? AND attempt = ?", key)
        self._debates -= 1
        return msgspec.msgpack.decode(found[0][0], type=OpenDebate, dec_hook=plain_as_array)

    def put_result(self, ended: DebateResult) -> None:
        """Keep how the latest attempt at a case ended, in place of an earlier one."""
        raw = msgspec.msgpack.encode(ended)
        case_id = ended.case_id
        self._query("DELETE FROM endings WHERE case_id = ?", (case_id,))
        if len(raw) <= _MOST_BYTES:
            self._query("INSERT INTO endings (case_id, ended) VALUES (?, ?)", (case_id, raw))
            self._query("DELETE FROM endings WHERE number <= last_insert_rowid() - ?", (self._most_endings,))

    def results(self, case_ids: Iterable[str]) -> dict[str, DebateResult]:
        """By case, what is known; the others are left out."""
        found = {}
        for case_id in case_ids:
            for (raw,) in self._query("SELECT ended FROM endings WHERE case_id = ?", (case_id,)):
                found[case_id] = msgspec.msgpack.decode(raw, type=DebateResult)
        return found

    def groups_of(self, case_ids: Iterable[str]) -> Groups:
        """Where rows of these cases may lie in committed parts. They never change: each is looked through once, and
        only for its case ids."""
        wanted = {hash(case_id) for case_id in case_ids}
        query = "SELECT row_group FROM places WHERE file = ? AND hash = ?"

        def groups(file: Path) -> list[int]:
            if file not in self._files:
                self._look_through(file)
            number = self._files[file]
            return sorted({group for one in wanted for (group,) in self._query(query, (number, one))})

        return groups

    def _look_through(self, file: Path) -> None:
        """Note each row group's cases by the hash of their ids: two with one hash cost a reading too much, no more."""
        number = len(self._files)
        with open_parquet(file, read_dictionary=["case_id"]) as part:
            for group in range(part.num_row_groups):
                hashes = [hash(i) for i in part.read_row_group(group, ["case_id"])["case_id"].unique().to_pylist()]
                for first in range(0, len(hashes), _INSERTED_TOGETHER):  # the event loop waits for the database, too
                    some = hashes[first : first + _INSERTED_TOGETHER]
                    with self._using:
                        rows = [(number, one, group) for one in some]
                        self._database.executemany("INSERT OR IGNORE INTO places VALUES (?, ?, ?)", rows)
        self._files[file] = number
