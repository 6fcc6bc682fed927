"""Signal aggregation in a record writer: log-probabilities and assessments of open debates, then only sums.

A reply's log-probabilities (4 bytes a token) are kept until its debate's verdict; those of judged replies are then
aggregated in bulk, off the event loop. Those of a debate without an assessment are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import structlog

from moot.actors.record.assessment_figures import read_figures
from moot.actors.record.open_debate import SAMPLING_COLUMNS, UNRECORDED, OpenDebate, SampledLogprobs
from moot.actors.record.rows import SHARED
from moot.actors.record.schema import CaseKey
from moot.actors.record.signal_group import JudgedReplySignals
from moot.actors.record.signals import Signals
from moot.protocols.case import is_shared_id

FOLD_TOKENS, FOLD_REPLIES = 50_000, 1_000
"""Tokens and replies that are aggregated at once; a reader triggers aggregation of the rest."""

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


def judged_replies(debate: OpenDebate, correct: bool | None) -> list[JudgedReplySignals]:
    """Signals of the judged replies of a debate with a verdict."""
    found = debate.assessments.items()
    return [
        JudgedReplySignals(*debate.logprobs.get(path, UNRECORDED), assessment, correct) for path, assessment in found
    ]


def belongs_to_debate(case_id: str, path: str) -> bool:
    """Whether a reply belongs to one debate; no verdict would end a shared reply."""
    return path != SHARED or not is_shared_id(case_id)


class SignalAggregator:
    """Aggregator of the signals of one writer.

    Args:
        folded: aggregated signals of debates with a verdict.
    """

    def __init__(self, folded: Signals | None = None) -> None:
        self._folded = folded or Signals()
        self._pending: list[JudgedReplySignals] = []
        self._pending_tokens = 0
        self._replies = self._folded.replies
        self._folding: asyncio.Task[None] | None = None

    @property
    def replies(self) -> int:
        """Number of judged replies so far: signals change only with it."""
        return self._replies

    def add_replies(self, batch: pa.RecordBatch, debate: Callable[[CaseKey], OpenDebate]) -> None:
        """Add appended rows of the stream `replies`."""
        keys = zip(*(batch[name].to_pylist() for name in ("case_id", "attempt", "path")), strict=True)
        for (case_id, attempt, path), sampled in zip(keys, sampled_logprobs(batch), strict=True):
            if belongs_to_debate(case_id, path):
                debate((case_id, attempt)).logprobs[path] = sampled

    def end(self, debate: OpenDebate, *, failed: bool, correct: bool | None) -> None:
        """End a debate, which has its verdict; a failed one does not count."""
        if failed or not debate.assessments:
            return
        judged = judged_replies(debate, correct)
        self._pending += judged
        self._replies += len(judged)
        self._pending_tokens += sum(len(one.logprobs) for one in judged if one.logprobs is not None)
        if self._pending_tokens >= FOLD_TOKENS or len(self._pending) >= FOLD_REPLIES:
            self._start_folding()

    def _start_folding(self) -> asyncio.Task[None]:
        if self._folding is None or self._folding.done():
            self._folding = asyncio.create_task(self._fold())
        return self._folding

    async def _fold(self) -> None:
        pending, self._pending, self._pending_tokens = self._pending, [], 0
        if pending:
            self._folded = await asyncio.to_thread(_with, self._folded, pending)

    async def signals(self) -> Signals:
        """Signals of every ended debate so far."""
        if self._folding is not None:  # it may have begun before the last of them ended
            await asyncio.shield(self._folding)
        await asyncio.shield(self._start_folding())  # a cancelled caller must not cancel the aggregation
        return self._folded


def _with(folded: Signals, judged: list[JudgedReplySignals]) -> Signals:
    return folded.merge(Signals.of(judged))
