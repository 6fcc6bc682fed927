"""Reading signals back from a record: what a writer must know to go on where an earlier life of it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.folder import RunFolder
from moot.actors.record.recovery import rows_as_written
from moot.actors.record.signal_group import JudgedReply, Sampling
from moot.actors.record.signal_keeper import (
    FOLD_TOKENS,
    UNRECORDED,
    CaseKey,
    OpenDebate,
    SignalKeeper,
    Spoken,
    in_a_debate,
)
from moot.actors.record.signals import Signals
from moot.actors.record.tables import read_table
from moot.protocols.rubrics.assessed import ASSESSMENT, AssessmentData, read_assessment

ReplyKey = tuple[str, int, str]
"""Case id, attempt, path."""

_KEY = ["case_id", "attempt", "path"]


def recover_signals(folder: RunFolder, mine: Callable[[str], bool]) -> SignalKeeper:
    """What a writer would keep if it had written the whole record, as far as `mine(case_id)` says it concerns it.

    Reads the log-probabilities of judged replies and of open debates: keep it off an event loop.
    """
    ended = {_case(row): row for row in read_table(folder, "verdicts", ["failed", "correct"]).to_pylist()}
    assessed = _assessed(folder, mine)
    past = _Past({key: row["correct"] for key, row in ended.items() if not row["failed"]})
    debates: dict[CaseKey, OpenDebate] = {}
    for (case_id, attempt, _), assessment in assessed.items():
        if (case_id, attempt) not in ended:
            debates.setdefault((case_id, attempt), OpenDebate()).assessments[assessment.reply] = assessment
    wanted = {key: found for key, found in assessed.items() if key[:2] in past.correct}
    for key, said in _said(folder, _standing(folder, mine, lambda key: key in wanted or key[:2] not in ended)):
        if key in wanted:
            past.add(key[:2], said, wanted.pop(key))
        else:
            debates.setdefault(key[:2], OpenDebate()).replies[key[2]] = said
    for key, assessment in wanted.items():
        past.add(key[:2], UNRECORDED, assessment)
    return SignalKeeper(past.signals(), debates)


class _Past:
    """Judged replies of debates that have their verdict, folded in before they become too many."""

    def __init__(self, correct: dict[CaseKey, bool | None]) -> None:
        self.correct = correct
        self._folded, self._pending, self._tokens = Signals(), list[JudgedReply](), 0

    def add(self, key: CaseKey, said: Spoken, assessment: AssessmentData) -> None:
        self._pending.append(JudgedReply(said.logprobs, said.sampling, assessment, self.correct[key]))
        self._tokens += 0 if said.logprobs is None else len(said.logprobs)
        if self._tokens >= FOLD_TOKENS:
            self.signals()

    def signals(self) -> Signals:
        self._folded = self._folded.merge(Signals.of(self._pending))
        self._pending, self._tokens = [], 0
        return self._folded


def _case(row: dict[str, Any]) -> CaseKey:
    return row["case_id"], row["attempt"]


def _assessed(folder: RunFolder, mine: Callable[[str], bool]) -> dict[ReplyKey, AssessmentData]:
    """The assessments by the reply that they are about."""
    events = read_table(folder, "events", ["data"])
    found = {}
    for row in events.filter(pc.equal(events["kind"], ASSESSMENT)).to_pylist():
        assessment = read_assessment(msgspec.json.decode(row["data"])) if mine(row["case_id"]) else None
        if assessment is not None:
            found[(*_case(row), assessment.reply)] = assessment
    return found


def _standing(
    folder: RunFolder, mine: Callable[[str], bool], wanted: Callable[[ReplyKey], bool]
) -> dict[ReplyKey, tuple[str, Sampling]]:
    """Id and sampling of those replies that count, of the wanted keys."""
    turns = read_table(folder, "turns", ["temperature", "top_p"])
    found = {}
    for row in turns.filter(pc.invert(turns["superseded"])).to_pylist():
        key = (*_case(row), row["path"])
        if mine(row["case_id"]) and in_a_debate(row["case_id"], row["path"]) and wanted(key):
            found[key] = row["reply_id"], Sampling(row["temperature"], row["top_p"])
    return found


def _said(folder: RunFolder, standing: dict[ReplyKey, tuple[str, Sampling]]) -> Iterator[tuple[ReplyKey, Spoken]]:
    """Their log-probabilities, where some are recorded: each once."""
    if not standing:
        return
    case_ids = pa.array(sorted({case_id for case_id, _, _ in standing}))
    for batch in rows_as_written(folder, "tokens", "replies", [*_KEY, "reply_id", "logprob"], case_ids):
        rows = batch.select([*_KEY, "reply_id"]).to_pylist()
        for row, logprobs in zip(rows, batch["logprob"], strict=True):
            key = (*_case(row), row["path"])
            reply_id, sampling = standing.get(key, ("", None))
            if sampling is not None and reply_id == row["reply_id"] and logprobs.is_valid:
                del standing[key]
                yield key, Spoken(logprobs.values.to_numpy(zero_copy_only=False).copy(), sampling)
