"""Row deduplication in a record writer, and the check before a verdict is committed.

Rows are sent again after a lost call; a replayed debate repeats its notes; and an ask that was paid for twice has two
replies. The first reply of a path is effective, unless a later one supersedes it. A verdict is admitted when every
reply that it depends on is effective.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

from moot.actors.record.debate_result import DebateResult
from moot.actors.record.open_debate import OpenDebate
from moot.actors.record.rows import sorted_json
from moot.actors.record.schema import ABANDONED, BOOKKEEPING_EVENTS, CaseKey
from moot.actors.record.writer_cache import WriterCache
from moot.protocols.case import LabelledCase, Reference, is_shared_id
from moot.protocols.messages import Event

_NOTED = 20_000
"""Notes remembered for deduplication; rows that are sent again arrive within seconds."""

_MAX_ATTEMPTS = 16


class GroundTruth(NamedTuple):
    """Ground truth of a case in progress, and the number of its registration.

    Attributes:
        is_reply: whether the case is a reply to judge, for which a verdict without an answer is no error.
    """

    gold: str | None
    reference: Reference
    is_reply: bool
    number: int


class RowDeduplicator:
    """Deduplicates rows by key, for the cases and debates of one writer.

    A debate that has ended without a verdict is evicted; it is loaded again when its next row, or its case, arrives.

    Args:
        memory: stores evicted debates.
        finished: debates with a verdict.
    """

    def __init__(self, memory: WriterCache, finished: set[CaseKey]) -> None:
        self._memory, self._finished = memory, finished
        self._open: dict[CaseKey, OpenDebate] = {}
        self._ground_truth: dict[str, GroundTruth] = {}
        self._to_evict: set[str] = set()
        self._waiting: dict[CaseKey, asyncio.Event] = {}
        self._noted: dict[tuple[str, int, str, str, float], None] = {}

    def register(self, cases: Sequence[LabelledCase], number: int) -> list[CaseKey]:
        """See `RecordWriter.register`; returns the cancelled debates that are open again."""
        self.evict()
        resumed: list[CaseKey] = []
        for labelled in cases:
            case_id = labelled.case.id
            self._to_evict.discard(case_id)
            self._ground_truth[case_id] = GroundTruth(
                labelled.gold, labelled.reference, labelled.case.judged is not None, number
            )
            for key in [(case_id, attempt) for attempt in self._memory.attempts(case_id)]:
                if (debate := self.debate(key)).cancelled:
                    debate.cancelled = False
                    resumed.append(key)
        known = {labelled.case.id for labelled in cases}
        for key, waiting in self._waiting.items():
            if key[0] in known:
                waiting.set()
        return resumed

    def is_registered(self, case_id: str) -> bool:
        """Whether the ground truth of a case is known."""
        return case_id in self._ground_truth

    def release(self, case_id: str, number: int) -> bool:
        """Stop waiting for rows of a case, which `evict` then evicts; False if it was registered again since."""
        if (truth := self._ground_truth.get(case_id)) is not None and truth.number > number:
            return False
        self._to_evict.add(case_id)
        return True

    def cancel(self, key: CaseKey) -> bool:
        """Mark a debate as cancelled; False if it has its verdict, or is marked already."""
        if key in self._finished or (debate := self.debate(key)).cancelled:
            return False
        debate.cancelled = True
        return True

    def evict(self) -> None:
        """Evict the debates that nobody waits for; called after rows and verdicts, and after `release`."""
        for case_id in self._to_evict:
            for key in ((case_id, attempt) for attempt in range(_MAX_ATTEMPTS)):
                if (debate := self._open.pop(key, None)) is not None:
                    self._memory.put_debate(key, debate)
            self._ground_truth.pop(case_id, None)
        self._to_evict.clear()

    def debate(self, key: CaseKey) -> OpenDebate:
        """State of a debate without a verdict; created if missing."""
        found = self.find(key)
        return self._load(key, OpenDebate()) if found is None else found

    def find(self, key: CaseKey) -> OpenDebate | None:
        """State of a debate without a verdict; None if nothing has arrived of it."""
        if (debate := self._open.get(key)) is not None:
            return debate
        evicted = self._memory.pop_debate(key)
        return None if evicted is None else self._load(key, evicted)

    def _load(self, key: CaseKey, debate: OpenDebate) -> OpenDebate:
        self._open[key] = debate
        if key[0] not in self._ground_truth and not is_shared_id(key[0]):
            self._to_evict.add(key[0])
        return debate

    def has_ended(self, key: CaseKey) -> bool:
        """Whether a debate has its verdict."""
        return key in self._finished

    def so_far(self, keys: Sequence[CaseKey]) -> tuple[int, int]:
        """Numbers of these debates with a verdict, and of effective replies of the others."""
        others = [key for key in keys if key not in self._finished]
        return len(keys) - len(others), sum(len(self.debate(key).reply_ids) for key in others)

    async def changed(self, key: CaseKey) -> None:
        """Wait until something arrives that the debate's verdict may wait for."""
        waiting = self._waiting[key] = self._waiting.get(key) or asyncio.Event()
        try:
            await waiting.wait()
        finally:
            if self._waiting.get(key) is waiting:
                del self._waiting[key]

    def _arrived(self, key: CaseKey) -> None:
        if (waiting := self._waiting.get(key)) is not None:
            waiting.set()

    def end(self, key: CaseKey) -> GroundTruth:
        """End a debate, which has its verdict: later rows of it are late. Returns the ground truth of its case."""
        self._finished.add(key)
        self._open.pop(key, None)
        self._arrived(key)
        return self._ground_truth.pop(key[0], GroundTruth(None, Reference(), False, 0))

    def accept_reply(self, key: CaseKey, path: str, reply_id: str, supersedes: str | None) -> OpenDebate | None:
        """Accept a reply; returns its debate, or None if the reply is a duplicate, another one is effective at its
        path, or its debate has ended."""
        if key in self._finished:
            return None
        debate = self.debate(key)
        if not debate.accept(path, reply_id, supersedes):
            return None
        self._arrived(key)
        return debate

    def accept_event(self, key: CaseKey, event: Event, at: float) -> bool:
        """Accept an event: whether it is new and its debate has no verdict yet. The possible cost of an abandoned call
        is recorded even after that."""
        note = (*key, event.kind, event.path, at)
        if key in self._finished:
            return event.kind == ABANDONED and not self._came_before(note)
        debate = self.debate(key)
        if event.kind in BOOKKEEPING_EVENTS:
            return not self._came_before(note)
        # A replay repeats notes; if it had to pay again, its signals may differ: the last ones count.
        known = debate.events.get((event.kind, event.path))
        debate.events[event.kind, event.path] = digest = crc32(sorted_json(event.data).encode())
        return known != digest

    def _came_before(self, note: tuple[str, int, str, str, float]) -> bool:
        """Whether the note of an attempt to pay is a duplicate: of equal content and time, as for readers."""
        known = note in self._noted
        self._noted[note] = None
        if len(self._noted) > _NOTED:
            del self._noted[next(iter(self._noted))]
        return known


_PATIENCE_S = 10.0


class CommitCheck:
    """Admission check for verdicts: once per debate, and when every reply that it depends on has arrived.

    Args:
        arrivals: the deduplicated rows so far.
        write: writes an admitted verdict to the journal, with its debate and its case's ground truth.
        incarnation: of the writer. Rows that an earlier incarnation had received and not written are lost. A missing
            reply shows by its id, a missing note does not: so a debate with notes from then is replayed, which repeats
            them.
    """

    def __init__(
        self,
        arrivals: RowDeduplicator,
        write: Callable[[DebateResult, OpenDebate, GroundTruth], None],
        incarnation: str,
    ) -> None:
        self._arrivals, self._write, self._incarnation = arrivals, write, incarnation

    async def check(self, results: Sequence[DebateResult]) -> list[bool]:
        """Whether each verdict is in the journal, now or before; waits briefly for replies that may still arrive."""
        admitted = [self._at_once(result) for result in results]
        late = [i for i, ok in enumerate(admitted) if ok is None]
        for i, ok in zip(late, await asyncio.gather(*(self._in_time(results[i]) for i in late)), strict=True):
            admitted[i] = ok
        return [bool(ok) for ok in admitted]

    def _at_once(self, result: DebateResult) -> bool | None:
        """Admit a verdict whose replies have all arrived, or refuse one that depends on others; None to wait for the
        ground truth of its case, or for some of its replies."""
        key = (result.case_id, result.attempt)
        if self._arrivals.has_ended(key):
            return True
        if result.noted_in not in ("", self._incarnation):
            return False
        debate = self._arrivals.debate(key)
        if debate.cancelled:
            return False
        if not self._arrivals.is_registered(result.case_id) or not result.replies.keys() <= debate.reply_ids.keys():
            return None
        if any(debate.reply_ids[path] != reply_id for path, reply_id in result.replies.items()):
            return False
        self._write(result, debate, self._arrivals.end(key))
        return True

    async def _in_time(self, result: DebateResult) -> bool:
        """As `_at_once`, waiting for what may still arrive."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while (admitted := self._at_once(result)) is None:
                    await self._arrivals.changed((result.case_id, result.attempt))
        except TimeoutError:
            return False
        return admitted
