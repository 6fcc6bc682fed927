"""Recovery of a run's signals from its record: each stream is read twice, whatever the number of debates.

First only keys are read, which tell how many rows each debate has. Then its values count as soon as all of its rows
have come: the rows of a debate are written close together, so that those of few debates are in memory at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.assessment_figures import AssessmentFigures
from moot.actors.record.folder import RunFolder
from moot.actors.record.open_debate import OpenDebate
from moot.actors.record.recovery import EVENT_COLUMNS, replay_event, replay_reply, reply_rows
from moot.actors.record.schema import CaseKey
from moot.actors.record.signal_aggregator import SignalBatch
from moot.actors.record.signals import Signals
from moot.actors.record.tables import read_raw_pieces, read_raw_rows, read_table
from moot.protocols.round_values import ROUND_EVENTS
from moot.protocols.rubrics.events import ReplyAssessed

Row = dict[str, Any]

_KEY = ["case_id", "attempt"]
_WATCHED = pc.field("kind").isin((*ROUND_EVENTS, ReplyAssessed.kind))
_TOKENS_TOGETHER, _ITEMS_TOGETHER = 500_000, 5_000


def recover_signals(folder: RunFolder, mine: Callable[[str], bool]) -> Signals:
    """Recovers the signals from the record, for the cases by `mine(case_id)`.

    Rounds are those of each case's latest attempt with a verdict, and of attempts without one after it. Reads the
    log-probabilities of the ended debates that have any: keep it off an event loop.
    """
    correct: dict[CaseKey, bool | None] = {}
    latest: dict[str, int] = {}
    for row in read_table(folder, "verdicts", ["failed", "correct"]).to_pylist():
        if mine(row["case_id"]):
            latest[row["case_id"]] = max(row["attempt"], latest.get(row["case_id"], 0))
            if not row["failed"]:
                correct[row["case_id"], row["attempt"]] = row["correct"]
    folding = _Folding()
    assessed: dict[CaseKey, dict[str, AssessmentFigures]] = {}
    for key, debate in _noted(folder, mine):
        if key[1] >= latest.get(key[0], 0):
            folding.add_rounds(debate)
        if debate.assessments and key in correct:
            assessed[key] = debate.assessments
    for key, debate in _spoken(folder, correct.keys(), assessed.keys()):
        debate.assessments = assessed.pop(key, {})
        folding.add_replies(debate, correct[key])
    for key, assessments in assessed.items():  # of what nobody said
        folding.add_replies(OpenDebate(assessments=assessments), correct[key])
    return folding.signals()


class _Folding:
    """Signals so far, and a batch that is added to them once it is large."""

    def __init__(self) -> None:
        self._folded, self._batch, self._tokens = Signals(), SignalBatch(), 0

    def add_rounds(self, debate: OpenDebate) -> None:
        self._batch.rounds += debate.rounds.values()
        self._fold_if_large()

    def add_replies(self, debate: OpenDebate, correct: bool | None) -> None:
        self._batch.add_replies(debate, correct)
        spoken = (each.logprobs for each in debate.logprobs.values())
        self._tokens += sum(len(logprobs) for logprobs in spoken if logprobs is not None)
        self._fold_if_large()

    def _fold_if_large(self) -> None:
        if len(self._batch) >= _ITEMS_TOGETHER or self._tokens >= _TOKENS_TOGETHER:
            self.signals()

    def signals(self) -> Signals:
        """Signals of everything added so far."""
        self._folded = self._folded.merge(self._batch.signals())
        self._batch, self._tokens = SignalBatch(), 0
        return self._folded


def _noted(folder: RunFolder, mine: Callable[[str], bool]) -> Iterator[tuple[CaseKey, OpenDebate]]:
    """Debates with round measures and assessments, with nothing else."""
    batches = read_raw_rows(folder, "events", [*_KEY, "kind"], _WATCHED)
    counts = {key: n for key, n in Counter(_keys(batches)).items() if mine(key[0])}
    for key, rows in _gathered(_event_rows(folder) if counts else (), counts):
        debate = OpenDebate()
        for row in sorted(rows, key=lambda row: row["at"]):
            replay_event(debate, row)
        yield key, debate


def _event_rows(folder: RunFolder) -> Iterator[tuple[Hashable, Row]]:
    for batch in read_raw_rows(folder, "events", EVENT_COLUMNS, _WATCHED):
        for row in batch.to_pylist():
            yield (row["kind"], row["path"], row["at"]), row


def _spoken(
    folder: RunFolder, ended: Iterable[CaseKey], assessed: Iterable[CaseKey]
) -> Iterator[tuple[CaseKey, OpenDebate]]:
    """Ended debates with their replies: only assessed ones if the record has no tokens."""
    counted: Counter[CaseKey] = Counter()
    has_tokens = False
    for piece in read_raw_pieces(folder, {"turns": _KEY, "tokens": ["case_id"]}):
        counted.update(_keys(piece["turns"].to_batches() if "turns" in piece else ()))
        has_tokens = has_tokens or ("tokens" in piece and piece["tokens"].num_rows > 0)
    counts = {key: counted[key] for key in (ended if has_tokens else list(assessed)) if key in counted}
    rows = ((row["reply_id"], row) for row in reply_rows(folder)) if counts else ()
    for key, found in _gathered(rows, counts):
        debate = OpenDebate()
        for row in found:
            replay_reply(debate, row)
        yield key, debate


def _keys(batches: Iterable[pa.RecordBatch]) -> Iterator[CaseKey]:
    """Debate of each row."""
    for batch in batches:
        yield from zip(batch["case_id"].to_pylist(), batch["attempt"].to_pylist(), strict=True)


def _gathered(rows: Iterable[tuple[Hashable, Row]], counts: dict[CaseKey, int]) -> Iterator[tuple[CaseKey, list[Row]]]:
    """Rows of each counted debate, as soon as all have come, or at the end.

    Args:
        rows: each with what identifies it: a row that comes twice, see `read_raw_rows`, counts once.
        counts: number of rows of each debate.
    """
    left, gathered = dict(counts), dict[CaseKey, dict[Hashable, Row]]()
    for name, row in rows:
        key = (row["case_id"], row["attempt"])
        if key not in left:
            continue
        found = gathered.setdefault(key, {})
        found.setdefault(name, row)
        if len(found) >= left[key]:
            del left[key]
            yield key, list(gathered.pop(key).values())
    for key, found in gathered.items():
        yield key, list(found.values())
