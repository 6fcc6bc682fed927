"""Signal aggregation in a record writer: what debates have recorded, each event and reply once, then only sums.

Round measures count when they are recorded. A reply's log-probabilities (4 bytes a token) are kept until its debate's
verdict, and count then, as do assessments. Everything is aggregated in bulk, off the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa
import structlog

from moot.actors.record.assessment_figures import read_figures
from moot.actors.record.open_debate import SAMPLING_COLUMNS, UNRECORDED, OpenDebate, SampledLogprobs
from moot.actors.record.round_bands import RoundSums
from moot.actors.record.rows import SHARED
from moot.actors.record.schema import CaseKey
from moot.actors.record.signal_group import JudgedReplySignals
from moot.actors.record.signals import Signals
from moot.actors.record.token_confidence import SpokenReply, TokenConfidence
from moot.protocols.case import is_shared_id
from moot.protocols.messages import Event
from moot.protocols.round_values import RoundValues
from moot.protocols.rubrics.events import ReplyAssessed

FOLD_TOKENS, FOLD_ITEMS = 50_000, 1_000
"""Tokens, and replies and rounds, that are aggregated at once; a reader triggers aggregation of the rest."""

_log = structlog.get_logger(__name__)


def sampled_logprobs(batch: pa.RecordBatch) -> list[SampledLogprobs]:
    """Log-probabilities of each row of the stream `replies`; tokens are copied, so that the batch can be freed."""
    column = batch["logprob"]
    offsets = column.offsets.to_numpy()
    values = column.values.to_numpy(zero_copy_only=False)
    known = column.is_valid().to_pylist()
    asked = zip(*(batch[name].to_pylist() for name in SAMPLING_COLUMNS), strict=True)
    return [
        SampledLogprobs.of(values[offsets[row] : offsets[row + 1]].copy() if known[row] else None, *columns)
        for row, columns in enumerate(asked)
    ]


def add_assessment(debate: OpenDebate, data: dict[str, Any], case_id: str = "") -> None:
    """Adds the mean scores of an event of kind `assessment`: the judges' texts are many times larger, and no signal
    uses them. A malformed one is skipped, with a warning that names the case."""
    assessment = read_figures(data)
    if assessment is None:
        _log.warning("an event of kind `assessment` is left out of the signals: it is invalid", case=case_id)
        return
    debate.assessments[assessment.reply] = msgspec.structs.replace(assessment, judges=(), scales=())


def belongs_to_debate(case_id: str, path: str) -> bool:
    """Whether a reply belongs to one debate; no verdict would end a shared reply."""
    return path != SHARED or not is_shared_id(case_id)


@dataclass
class SignalBatch:
    """What is to be aggregated together.

    Attributes:
        judged: judged replies of debates with a verdict.
        spoken: replies with log-probabilities of debates with a verdict.
        rounds, replaced: values that were recorded; earlier ones that they replace.
    """

    judged: list[JudgedReplySignals] = field(default_factory=list)
    spoken: list[SpokenReply] = field(default_factory=list)
    rounds: list[RoundValues] = field(default_factory=list)
    replaced: list[RoundValues] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.judged) + len(self.spoken) + len(self.rounds) + len(self.replaced)

    def add_replies(self, debate: OpenDebate, correct: bool | None) -> None:
        """Add the replies of a debate with a verdict that did not fail."""
        for path, assessment in debate.assessments.items():
            logprobs, _, model, sampling = debate.logprobs.get(path, UNRECORDED)
            self.judged.append(JudgedReplySignals(logprobs, model, sampling, assessment, correct))
        self.spoken += _spoken_replies(debate)

    def signals(self) -> Signals:
        """Signals of the whole batch."""
        rounds = RoundSums.of(self.rounds).without(RoundSums.of(self.replaced))
        return Signals.of(self.judged).merge(Signals({}, rounds, TokenConfidence.of(self.spoken)))


def _spoken_replies(debate: OpenDebate) -> Iterator[SpokenReply]:
    """Replies with log-probabilities that ended their ask."""
    for path, (logprobs, role, model, sampling) in debate.logprobs.items():
        if logprobs is not None and len(logprobs) and "~" not in path:
            yield SpokenReply.of(role, model, sampling, path, logprobs)


class SignalAggregator:
    """Aggregator of the signals of one writer.

    Args:
        folded: aggregated signals of the record so far.
        earlier_rounds: reads the values of the attempts before these, which count no more when a later one has its
            verdict.

    Attributes:
        version: increases with whatever changes the signals.
    """

    def __init__(
        self,
        folded: Signals | None = None,
        earlier_rounds: Callable[[list[CaseKey]], Awaitable[list[RoundValues]]] | None = None,
    ) -> None:
        self._folded = folded or Signals()
        self._earlier_rounds = earlier_rounds
        self._pending = SignalBatch()
        self._retried: list[CaseKey] = []
        self._pending_tokens = 0
        self._folding: asyncio.Task[None] | None = None
        self.version = 0

    def add_replies(self, batch: pa.RecordBatch, debate: Callable[[CaseKey], OpenDebate]) -> None:
        """Add appended rows of the stream `replies`."""
        keys = zip(*(batch[name].to_pylist() for name in ("case_id", "attempt", "path")), strict=True)
        for (case_id, attempt, path), sampled in zip(keys, sampled_logprobs(batch), strict=True):
            if belongs_to_debate(case_id, path):
                debate((case_id, attempt)).logprobs[path] = sampled

    def add_event(self, debate: OpenDebate, event: Event, case_id: str) -> None:
        """Add an accepted event; one that repeats an earlier event of its kind and path replaces it."""
        if event.kind == ReplyAssessed.kind:
            add_assessment(debate, event.data, case_id)
        old, new = debate.replace_round(event)
        self._pending.replaced += [] if old is None else [old]
        self._pending.rounds += [] if new is None else [new]
        self._added(0 if old is None and new is None else 1)

    def end(self, key: CaseKey, debate: OpenDebate, *, failed: bool, correct: bool | None) -> None:
        """End a debate, which has its verdict; replies of a failed one do not count."""
        if key[1]:
            self._retried.append(key)
        before, spoken = len(self._pending), len(self._pending.spoken)
        if not failed:
            self._pending.add_replies(debate, correct)
        self._pending_tokens += sum(len(one.logprobs) for one in self._pending.spoken[spoken:])
        self._added(len(self._pending) - before + bool(key[1]))

    def _added(self, items: int) -> None:
        self.version += items
        if self._pending_tokens >= FOLD_TOKENS or len(self._pending) >= FOLD_ITEMS:
            self._start_folding()

    def _start_folding(self) -> asyncio.Task[None]:
        if self._folding is None or self._folding.done():
            self._folding = asyncio.create_task(self._fold())
        return self._folding

    async def _fold(self) -> None:
        pending, self._pending, self._pending_tokens = self._pending, SignalBatch(), 0
        retried, self._retried = self._retried, []
        if retried and self._earlier_rounds is not None:
            pending.replaced += await self._earlier_rounds(retried)
        if len(pending):
            self._folded = await asyncio.to_thread(_with, self._folded, pending)

    async def signals(self) -> Signals:
        """Signals of everything added so far; the same object while nothing is added."""
        if self._folding is not None:  # it may have begun before the last of them ended
            await asyncio.shield(self._folding)
        await asyncio.shield(self._start_folding())  # a cancelled caller must not cancel the aggregation
        return self._folded


def _with(folded: Signals, batch: SignalBatch) -> Signals:
    return folded.merge(batch.signals())
