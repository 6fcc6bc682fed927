"""Reading a journal back: what a writer must know when it starts, and what a debate that runs again may reuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import msgspec
import numpy as np

from moot.actors.record.as_written import Snapshot, rows_as_written
from moot.actors.record.folder import RunFolder
from moot.actors.record.part_index import PartIndex
from moot.actors.record.progress import Progress
from moot.actors.record.rows import DECISION, INVALID_SUFFIX, RecordedReply, call_of, merge_reasks, recorded_replies
from moot.actors.record.schema import EMBEDDINGS, TURNS, CaseKey
from moot.actors.record.tables import read_table
from moot.protocols.messages import Ask, Unreadable


class History(msgspec.Struct, frozen=True):
    """What is recorded of one debate.

    Attributes:
        replies: those that end their ask; a re-asked one holds its first reply, too.
        unreadable: by path, first replies whose model has not been asked again yet.
        cuts: by the path of a call (see `rows.call_of`), the fingerprints of its replies that were stopped early.
        vectors: embeddings by (encoder, text hash), as float32 bytes.
    """

    replies: list[RecordedReply] = []
    unreadable: dict[str, RecordedReply] = {}
    cuts: dict[str, list[str]] = {}
    vectors: dict[str, bytes] = {}

    def go_on_with(self, ask: Ask) -> Ask:
        """The ask, with what is recorded of it already: a first reply that could not be read, and how many were stopped
        early. They are not paid for again."""
        first = self.unreadable.get(ask.path)
        if first is None or first.fingerprint not in ask.fingerprints:
            return msgspec.structs.replace(ask, cuts=self._cuts(ask, ask.path))
        known = first.answered
        reply_id = known.reply_id.removesuffix(INVALID_SUFFIX)
        unreadable = Unreadable(reply_id, known.text, known.error, known.usage)
        return msgspec.structs.replace(ask, unreadable=unreadable, cuts=self._cuts(ask, ask.path + INVALID_SUFFIX))

    def has_cuts(self, path: str) -> bool:
        """Whether a reply to the ask at `path` was stopped early."""
        return path in self.cuts or path + INVALID_SUFFIX in self.cuts

    def _cuts(self, ask: Ask, call: str) -> int:
        return sum(cut in ask.fingerprints for cut in self.cuts.get(call, []))


def vector_key(encoder: str, text_hash: str) -> str:
    """The key of `History.vectors`."""
    return f"{encoder}/{text_hash}"


@dataclass
class State:
    """A writer's knowledge at its start: finished debates, and the keys of what the others have recorded."""

    finished: set[CaseKey]
    cases: set[str]
    replies: list[tuple[str, int, str, str]]
    events: list[tuple[str, int, str, str, int]]
    progress: Progress


def recover(folder: RunFolder, mine: Callable[[str], bool]) -> State:
    """Read the record as far as `mine(case_id)` says it concerns this writer."""
    progress = Progress()
    finished: set[CaseKey] = set()
    for verdict in read_table(folder, "verdicts", ["how", "failed", "correct", "rounds"]).to_pylist():
        if mine(verdict["case_id"]):
            finished.add((verdict["case_id"], verdict["attempt"]))
            progress.verdict(verdict["how"], verdict["failed"], verdict["correct"], verdict["rounds"])
    replies: dict[tuple[str, int, str], str] = {}
    columns = [
        "case_id",
        "attempt",
        "path",
        "reply_id",
        "supersedes",
        "prompt_tokens",
        "completion_tokens",
        "reused_from",
    ]
    for batch in rows_as_written(folder, "turns", "replies", columns):
        for row in batch.to_pylist():
            if not mine(row["case_id"]):
                continue
            if not row["reply_id"].startswith(DECISION):
                progress.reply(row["prompt_tokens"], row["completion_tokens"], reused=row["reused_from"] is not None)
            key = (row["case_id"], row["attempt"], row["path"])
            if key[:2] not in finished and replies.get(key) in (None, row["supersedes"]):
                replies[key] = row["reply_id"]
    events = [
        (row["case_id"], row["attempt"], row["kind"], row["path"], crc32(row["data"].encode()))
        for row in read_table(folder, "events", ["data"]).to_pylist()
        if (row["case_id"], row["attempt"]) not in finished and mine(row["case_id"])
    ]
    cases = {case_id for case_id in read_table(folder, "cases", [])["case_id"].to_pylist() if mine(case_id)}
    return State(finished, cases, [(*key, reply_id) for key, reply_id in replies.items()], events, progress)


HISTORY_STREAMS = ("replies", "embeddings")
"""The streams that `histories` wants of a snapshot."""


def histories(recorded: Snapshot, keys: Sequence[CaseKey], index: PartIndex) -> list[History]:
    """What is recorded of each debate; of several replies on one path the one that nothing supersedes."""
    replies: dict[CaseKey, dict[str, RecordedReply]] = {key: {} for key in keys}
    for batch in recorded.rows("turns", "replies", TURNS.names, index):
        replaced = batch["supersedes"].to_pylist()
        for (case_id, attempt, reply), supersedes in zip(recorded_replies(batch), replaced, strict=True):
            known = replies.get((case_id, attempt))
            if known is None:
                continue
            earlier = known.get(reply.path)
            if earlier is None or supersedes == earlier.answered.reply_id:
                known[reply.path] = reply
    vectors: dict[CaseKey, dict[str, bytes]] = {key: {} for key in keys}
    for batch in recorded.rows("embeddings", "embeddings", EMBEDDINGS.names, index):
        for row in batch.to_pylist():
            if (row["case_id"], row["attempt"]) in vectors:
                stored = vectors[row["case_id"], row["attempt"]]
                raw = np.asarray(row["vector"], np.float32).tobytes()
                stored.setdefault(vector_key(row["encoder"], row["text_hash"]), raw)
    return [_history(list(replies[key].values()), vectors[key]) for key in keys]


def _history(replies: Sequence[RecordedReply], vectors: dict[str, bytes]) -> History:
    cuts: dict[str, list[str]] = {}
    whole = []
    for reply in replies:
        call = call_of(reply.path)
        if call is None:
            whole.append(reply)
        else:
            cuts.setdefault(call, []).append(reply.fingerprint)
    merged = merge_reasks(whole)
    ended = {reply.answered.reply_id + INVALID_SUFFIX for reply in merged.values()}
    unreadable = {
        reply.path.removesuffix(INVALID_SUFFIX): reply
        for reply in whole
        if reply.path.endswith(INVALID_SUFFIX) and reply.answered.reply_id not in ended
    }
    return History(list(merged.values()), unreadable, cuts, vectors)
