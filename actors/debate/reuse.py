"""Reply cache: the journal of another run, which answers asks with an equal fingerprint without paying."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec
import pyarrow.compute as pc

from moot.actors.agent.agent import Sink
from moot.actors.record.recorded_replies import RecordedReplies
from moot.actors.record.recorded_run import HashIndex, RecordedRun, Row
from moot.actors.record.recovery import History
from moot.actors.record.rows import INVALID_SUFFIX, SaveTokens, merge_reasks, recorded_reply
from moot.actors.record.schema import TOKEN_COLUMNS
from moot.protocols.messages import Ask, AskResult

_USABLE = frozenset({"ok", "repaired", "reasked"})
_CHOSEN_ONLY = frozenset({"token", "logprob"})


class _Index:
    """Index of a run's usable replies by fingerprint, and of the unparsable first replies by their ids."""

    def __init__(self, run: RecordedRun) -> None:
        self._run = run
        columns = [run.replies[name].to_pylist() for name in ("outcome", "fingerprint", "case_id", "attempt", "path")]
        marks, places = list[str](), list[str]()
        for outcome, mark, *key in zip(*columns, strict=True):
            usable = mark and outcome in _USABLE
            marks.append(mark if usable else "")
            places.append(_place(mark, *key) if usable else "")
        self._by_fingerprint, self._by_place = HashIndex(marks), HashIndex(places)
        self.usable = len(marks) - marks.count("")
        invalid = pc.equal(run.replies["outcome"], "invalid")
        numbers = pc.indices_nonzero(invalid)
        ids = run.replies["reply_id"].take(numbers).to_pylist()
        self._first_replies: dict[str, int] = dict(zip(ids, numbers.to_pylist(), strict=True))

    def at_its_place(self, ask: Ask) -> Iterator[int]:
        """Usable reply under the ask's own case, attempt and path, if its fingerprint is equal."""
        numbers = (number for mark in ask.fingerprints for number in self._by_place.find(_place(mark, *ask.key)))
        return (number for number in numbers if self._run.key(number) == ask.key)

    def anywhere(self, ask: Ask) -> Iterator[int]:
        """Usable replies to asks with an equal fingerprint, in order of case id, attempt and path."""
        marks = self._run.replies["fingerprint"]
        numbers = (number for mark in ask.fingerprints for number in self._by_fingerprint.find(mark))
        return (number for number in numbers if marks[number].as_py() in ask.fingerprints)

    def first_reply(self, reply_id: str) -> int | None:
        """Unparsable reply that the reply with this id replaced."""
        return self._first_replies.get(reply_id + INVALID_SUFFIX)


def count_reusable(run: RecordedRun) -> int:
    """Counts the replies of a run that can answer an ask of another run."""
    return _Index(run).usable


class ReplyCache:
    """Reply cache that the debates of a process share: the record of another run.

    Args:
        folder: absolute folder of that run.
        save_tokens: how much of the log-probabilities is copied to this run's record.
    """

    def __init__(self, folder: str, save_tokens: SaveTokens) -> None:
        self._replies = RecordedReplies(folder, _Index)
        kept = {"none": frozenset[str](), "chosen": _CHOSEN_ONLY, "all": frozenset(TOKEN_COLUMNS)}[save_tokens]
        self._dropped = frozenset(TOKEN_COLUMNS) - kept

    def for_debate(self, record_client: Sink, history: History) -> DebateCache:
        """Cache of one debate; `history` is the debate's recorded part in this run."""
        return DebateCache(self, record_client, {reply.reused_from for reply in history.replies})

    async def opened(self) -> tuple[RecordedRun, _Index]:
        """The run and its index. Raises RecordError."""
        return await self._replies.opened()

    async def rows(self, number: int, first: int | None) -> list[Row]:
        """Row of a reply, preceded by that of the unparsable first one. Raises RecordError."""
        wanted = [number] if first is None else [first, number]
        rows = await asyncio.gather(*(self._replies.row(each) for each in wanted))
        return [{name: value for name, value in row.items() if name not in self._dropped} for row in rows]


class DebateCache:
    """Reply cache of one debate; no recorded reply answers two of its asks.

    Agents on the same model may send asks with equal fingerprints, and each needs a reply of its own: one reply for
    three agents would be an agreement that nobody reached. An ask takes the reply recorded under its own case, attempt
    and path if there is one, else the first unused one, by case id, attempt and path.
    """

    def __init__(self, cache: ReplyCache, record_client: Sink, taken: set[str]) -> None:
        self._cache, self._record_client = cache, record_client
        self._taken = taken

    async def answer(self, ask: Ask) -> AskResult | None:
        """Recorded reply, copied to this run's record; None when the ask has to be paid for.

        Raises:
            RecordError: the other run cannot be read any more.
        """
        run, index = await self._cache.opened()
        number = self._claim(run, index.at_its_place(ask))
        if number is None:
            await asyncio.sleep(0)  # concurrent asks first take the replies recorded under their own paths
            number = self._claim(run, index.anywhere(ask))
        if number is None:
            return None
        label = run.label(number)
        first = index.first_reply(run.replies["reply_id"][number].as_py())
        rows = await self._cache.rows(number, first)
        merged = merge_reasks([recorded_reply(row) for row in rows])
        reply_id = f"reused-{_digest(f'{ask.step_key}/{ask.fingerprint}')}"
        for row in rows:
            self._record_client.put_reply(ask.case_id, _columns(row, ask, reply_id, label))
        return msgspec.structs.replace(merged[rows[-1]["path"]].answered, path=ask.path, reply_id=reply_id)

    def _claim(self, run: RecordedRun, candidates: Iterable[int]) -> int | None:
        for number in candidates:
            if (label := run.label(number)) not in self._taken:
                self._taken.add(label)
                return number
        return None


def _place(fingerprint: str, case_id: str, attempt: int, path: str) -> str:
    return f"{fingerprint}/{case_id}/{attempt}/{path}"


def _columns(row: Row, ask: Ask, reply_id: str, label: str) -> dict[str, Any]:
    """A recorded row with the key of an ask. Its id is derived from the key, so that a repeated write is a
    duplicate."""
    suffix = INVALID_SUFFIX if row["outcome"] == "invalid" else ""
    return {
        **row,
        "case_id": ask.case_id,
        "attempt": ask.attempt,
        "path": ask.path + suffix,
        "role": ask.role,
        "template": ask.template,
        "fingerprint": ask.fingerprint,
        "reply_id": reply_id + suffix,
        "supersedes": ask.supersedes + suffix if ask.supersedes else None,
        "reused_from": label + suffix,
        "latency_s": None,
        "waited_s": None,
        "http_attempts": 0,
        "at": time.time(),
        "process_id": os.getpid(),
    }


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
