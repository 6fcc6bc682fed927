"""Reading signals back from a record: what a writer must know to go on where an earlier life of it ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.folder import RunFolder
from moot.actors.record.open_debate import SPEAKER_COLUMNS, UNRECORDED, Spoken
from moot.actors.record.schema import CaseKey
from moot.actors.record.signal_group import JudgedReply
from moot.actors.record.signal_keeper import FOLD_REPLIES, FOLD_TOKENS, SignalKeeper, in_a_debate, without_marks
from moot.actors.record.signals import Signals
from moot.actors.record.tables import of_cases, read_table, rows_as_written
from moot.protocols.rubrics.assessed import ASSESSMENT, AssessmentData, read_assessment

ReplyKey = tuple[str, int, str]
"""Case id, attempt, path."""

_KEY = ["case_id", "attempt", "path"]
_AT_ONCE = 1_000  # assessments as Python objects, with all their judges' texts


def recover_signals(folder: RunFolder, mine: Callable[[str], bool]) -> SignalKeeper:
    """What a writer would keep of ended debates if it had written the whole record, as far as `mine(case_id)` says it
    concerns it.

    Reads the log-probabilities of judged replies: keep it off an event loop. Where there are none, it looks at what
    kinds of event there are, and no further.
    """
    assessed = _assessed(folder, mine)
    if not assessed:
        return SignalKeeper()
    ended = _ended(folder, {case_id for case_id, _, _ in assessed})
    past = _Past({key: correct for key, (failed, correct) in ended.items() if not failed})
    wanted = {key: found for key, found in assessed.items() if key[:2] in past.correct}
    for key, said in _said(folder, _standing(folder, wanted)):
        past.add(key[:2], said, wanted.pop(key))
    for key, assessment in wanted.items():
        past.add(key[:2], UNRECORDED, assessment)
    return SignalKeeper(past.signals())


class _Past:
    """Judged replies of debates that have their verdict, folded in before they become too many."""

    def __init__(self, correct: dict[CaseKey, bool | None]) -> None:
        self.correct = correct
        self._folded, self._pending, self._tokens = Signals(), list[JudgedReply](), 0

    def add(self, key: CaseKey, said: Spoken, assessment: AssessmentData) -> None:
        self._pending.append(JudgedReply(*said, assessment, self.correct[key]))
        self._tokens += 0 if said.logprobs is None else len(said.logprobs)
        if self._tokens >= FOLD_TOKENS or len(self._pending) >= FOLD_REPLIES:
            self.signals()

    def signals(self) -> Signals:
        self._folded = self._folded.merge(Signals.of(self._pending))
        self._pending, self._tokens = [], 0
        return self._folded


def _case(row: dict[str, Any]) -> CaseKey:
    return row["case_id"], row["attempt"]


def _assessed(folder: RunFolder, mine: Callable[[str], bool]) -> dict[ReplyKey, AssessmentData]:
    """The assessments by the reply that they are about."""
    kinds = (batch["kind"] for batch in rows_as_written(folder, "events", ["kind"]))
    if not any(pc.any(pc.equal(kind, ASSESSMENT)).as_py() for kind in kinds):
        return {}
    events = read_table(folder, "events", ["data"], pc.field("kind") == ASSESSMENT)
    events = events.filter(pa.array(map(mine, events["case_id"].to_pylist()), pa.bool_()))
    found = {}
    for batch in events.select(["case_id", "attempt", "data"]).to_batches(_AT_ONCE):
        for row in batch.to_pylist():
            assessment = read_assessment(msgspec.json.decode(row["data"]))
            if assessment is not None:
                found[(*_case(row), assessment.reply)] = without_marks(assessment)
    return found


def _ended(folder: RunFolder, case_ids: Collection[str]) -> dict[CaseKey, tuple[bool, bool | None]]:
    """Which attempts at these cases have a verdict: whether it failed, and whether it is right."""
    verdicts = read_table(folder, "verdicts", ["failed", "correct"], of_cases(case_ids))
    return {_case(row): (row["failed"], row["correct"]) for row in verdicts.to_pylist()}


def _standing(folder: RunFolder, wanted: Collection[ReplyKey]) -> dict[ReplyKey, tuple[str, Spoken]]:
    """Of the wanted replies, those that count: the id, and what is known without the tokens."""
    turns = read_table(folder, "turns", SPEAKER_COLUMNS, of_cases({case_id for case_id, _, _ in wanted}))
    found = {}
    for row in turns.filter(pc.invert(turns["superseded"])).to_pylist():
        key = (*_case(row), row["path"])
        if key in wanted and in_a_debate(row["case_id"], row["path"]):
            found[key] = row["reply_id"], Spoken.of(None, *(row[name] for name in SPEAKER_COLUMNS))
    return found


def _said(folder: RunFolder, standing: dict[ReplyKey, tuple[str, Spoken]]) -> Iterator[tuple[ReplyKey, Spoken]]:
    """Their log-probabilities, where some are recorded: each once; then those without."""
    if not standing:
        return
    only = of_cases(case_id for case_id, _, _ in standing)
    for batch in rows_as_written(folder, "tokens", [*_KEY, "reply_id", "logprob"], only):
        rows = batch.select([*_KEY, "reply_id"]).to_pylist()
        for row, logprobs in zip(rows, batch["logprob"], strict=True):
            key = (*_case(row), row["path"])
            if key in standing and standing[key][0] == row["reply_id"] and logprobs.is_valid:
                tokens = logprobs.values.to_numpy(zero_copy_only=False).copy()
                yield key, standing.pop(key)[1]._replace(logprobs=tokens)
    for key, (_, silent) in standing.items():
        yield key, silent
