"""Trajectories of log-probability along judged replies, by role, as they are recorded."""

from __future__ import annotations

import json

import pyarrow as pa

from moot.actors.record.open_debate import SAMPLING_COLUMNS
from moot.actors.record.schema import CaseKey
from moot.actors.record.signal_aggregator import add_assessment, belongs_to_debate, judged_replies, sampled_logprobs
from moot.actors.record.signal_group import JudgedReplySignals
from moot.actors.record.signals import Signals
from moot.deploy.service.live.open_debates import OpenDebates

COLUMNS = [*SAMPLING_COLUMNS, "logprob"]
"""Columns of a reply, beside its key."""


class Trajectories:
    """Signals of the judged replies whose debates ended while the run was followed.

    Args:
        debates: the open ones, which keep their replies' log-probabilities.
    """

    def __init__(self, debates: OpenDebates) -> None:
        self._debates = debates
        self._pending: list[JudgedReplySignals] = []
        self._signals = Signals()

    def add_replies(self, turns: pa.Table) -> None:
        """Add rows of `turns` with their log-probabilities."""
        for batch in turns.combine_chunks().to_batches():
            keys = zip(*(batch[name].to_pylist() for name in ("case_id", "attempt", "path")), strict=True)
            for (case_id, attempt, path), sampled in zip(keys, sampled_logprobs(batch), strict=True):
                if sampled.logprobs is None or not belongs_to_debate(case_id, path):
                    continue
                if (debate := self._debates.find((case_id, attempt))) is not None:
                    debate.signals.logprobs[path] = sampled

    def assess(self, key: CaseKey, data: str) -> None:
        """Add an event of kind `assessment`, as JSON."""
        if (debate := self._debates.find(key)) is not None:
            add_assessment(debate.signals, json.loads(data), key[0])

    def end(self, key: CaseKey, correct: bool | None) -> None:
        """End a debate that did not fail, before it is closed."""
        debate = self._debates.find(key)
        if debate is not None and debate.signals.assessments:
            self._pending += judged_replies(debate.signals, correct)

    def signals(self) -> Signals:
        """Signals of every judged reply so far."""
        pending, self._pending = self._pending, []
        if pending:
            self._signals = self._signals.merge(Signals.of(pending))
        return self._signals
