"""Debates in progress: the last step of each, and its age.

A debate is in progress from its first row of the live session to its verdict or its cancellation, and again when it is
resumed. Debates of earlier sessions are not in progress, except those that wait for a person. A run that is not live
has no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.schema import CANCELLED, RESUMED, CaseKey
from moot.deploy.results.transcript import step_words
from moot.protocols.case import is_shared_id

SHOWN = 60
"""Most debates in a list: those open longest."""


_REMEMBERED = 20_000
"""Ended debates that are remembered: a cancelled reply may arrive later."""


class DebateUnderWay(msgspec.Struct):
    """Debate in progress.

    Attributes:
        began_at: Unix time of its first reply or note, or of its resumption.
        replies: number so far.
        step: path of the last reply or note.
        waits: whether it waits for a person.
    """

    began_at: float
    replies: int = 0
    step: str = ""
    waits: bool = False


class OpenDebates:
    """Debates in progress, by case and attempt."""

    def __init__(self) -> None:
        self._open: dict[CaseKey, DebateUnderWay] = {}
        self._ended: dict[CaseKey, None] = {}
        self._decided: dict[CaseKey, set[str]] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def waiting(self) -> int:
        """Number of debates that wait for a person."""
        return sum(debate.waits for debate in self._open.values())

    def find(self, key: CaseKey, at: float | None = None) -> DebateUnderWay | None:
        """State of a debate, created if it is new; None for one that has ended, and for a case id that is no debate's.

        Args:
            key: of the debate.
            at: Unix time of the row.
        """
        if key in self._ended or is_shared_id(key[0]):
            return None
        if key not in self._open:
            self._open[key] = DebateUnderWay(at or 0.0)
        return self._open[key]

    def add_decisions(self, turns: pa.Table) -> None:
        """Add the decisions of a person among rows of `turns` of any session: nothing waits for them."""
        for row in turns.filter(pc.equal(turns["role"], "person")).select(["case_id", "attempt", "path"]).to_pylist():
            self._decided.setdefault((row["case_id"], row["attempt"]), set()).add(row["path"])

    def add_replies(self, turns: pa.Table) -> None:
        """Add rows of `turns` of the live session, in the order of writing."""
        grouped = turns.select(["case_id", "attempt", "path", "at"]).group_by(["case_id", "attempt"], use_threads=False)
        found = grouped.aggregate([("path", "last"), ("path", "count"), ("at", "min")]).to_pydict()
        keys = zip(found["case_id"], found["attempt"], strict=True)
        for key, step, n, at in zip(keys, found["path_last"], found["path_count"], found["at_min"], strict=True):
            if (debate := self.find(key, at)) is not None:
                debate.replies += n
                debate.step, debate.waits = step, False

    def add_events(self, events: pa.Table) -> None:
        """Add rows of `events` of the live session, in the order of writing."""
        found = events.group_by(["case_id", "attempt"]).aggregate([("at", "min")]).to_pydict()
        for key, at in zip(zip(found["case_id"], found["attempt"], strict=True), found["at_min"], strict=True):
            self.find(key, at)
        ends = events.filter(pc.is_in(events["kind"], value_set=pa.array([CANCELLED, RESUMED])))
        for row in ends.select(["case_id", "attempt", "kind", "at"]).to_pylist():
            key = (row["case_id"], row["attempt"])
            if row["kind"] == CANCELLED:
                self.end([key])
            else:
                self._ended.pop(key, None)
                self.find(key, row["at"])

    def wait(self, key: CaseKey, path: str, at: float | None) -> None:
        """Note that a debate of any session waits for a person, until its next reply."""
        if path not in self._decided.get(key, ()) and (debate := self.find(key, at)) is not None:
            debate.step, debate.waits = path, True

    def end_session(self) -> None:
        """End the debates of a session that has ended; those that wait for a person still do."""
        self._open = {key: debate for key, debate in self._open.items() if debate.waits}

    def end(self, keys: Iterable[CaseKey]) -> None:
        """End debates, which have their verdicts or were cancelled: later rows of them are late."""
        for key in keys:
            self._open.pop(key, None)
            self._decided.pop(key, None)
            self._ended[key] = None
        for key in list(islice(self._ended, max(0, len(self._ended) - _REMEMBERED))):
            del self._ended[key]

    def shown(self, now: float) -> list[dict[str, Any]]:
        """Debates that wait for a person, then those open longest."""
        first = sorted(self._open.items(), key=lambda each: (not each[1].waits, each[1].began_at))[:SHOWN]
        return [
            {
                "case": case_id,
                "attempt": attempt,
                "replies": debate.replies,
                "step": step_words(debate.step) if debate.step else "",
                "waits": debate.waits,
                "open_s": round(max(0.0, now - debate.began_at), 1) if debate.began_at else None,
            }
            for (case_id, attempt), debate in first
        ]
