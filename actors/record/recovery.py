"""Recovery from the journal: the state of a starting writer, and the history of a resumed debate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import pyarrow.compute as pc

from moot.actors.record.debate_result import VERDICT_COLUMNS, DebateResult, ModelUsage
from moot.actors.record.folder import RunFolder
from moot.actors.record.open_debate import SAMPLING_COLUMNS, OpenDebate, SampledLogprobs
from moot.actors.record.progress import Progress
from moot.actors.record.rows import (
    DECISION,
    INVALID_SUFFIX,
    REPLAYED_COLUMNS,
    USAGE,
    RecordedReply,
    call_of,
    merge_reasks,
    recorded_replies,
    tokens_of,
)
from moot.actors.record.schema import CANCELLED, RESUMED, CaseKey
from moot.actors.record.signal_aggregator import SignalBatch, add_assessment, belongs_to_debate
from moot.actors.record.signals import Signals
from moot.actors.record.tables import of_cases, read_raw_rows, read_table
from moot.actors.record.writer_cache import WriterCache
from moot.protocols.messages import Ask, Event, Unreadable
from moot.protocols.round_values import ROUND_EVENTS, RoundValues
from moot.protocols.rubrics.events import ReplyAssessed

_DEBATES_TOGETHER, _ROUNDS_TOGETHER = 500, 5_000
_AS_JSON = ("distribution", "payload")


class History(msgspec.Struct, frozen=True):
    """Recorded history of one debate.

    Attributes:
        replies: replies that end their ask; a re-asked one includes its first reply.
        unreadable: unparsable first replies without a second ask yet, by path.
        cuts: fingerprints of replies that were stopped early, by the path of the call (see `rows.call_of`).
        vectors: embeddings by (encoder, text hash), as float32 bytes.
    """

    replies: list[RecordedReply] = []
    unreadable: dict[str, RecordedReply] = {}
    cuts: dict[str, list[str]] = {}
    vectors: dict[str, bytes] = {}

    def resume(self, ask: Ask) -> Ask:
        """Copy of the ask with its recorded part: an unparsable first reply, and the number of replies stopped early.
        These are not paid for again."""
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
    """Key of `History.vectors`."""
    return f"{encoder}/{text_hash}"


@dataclass
class WriterState:
    """State of a writer at its start, without the open debates, which are in its cache."""

    finished: set[CaseKey]
    cases: set[str]
    progress: Progress


def recover(folder: RunFolder, mine: Callable[[str], bool], memory: WriterCache) -> WriterState:
    """Recovers a writer's state from the record, for its cases by `mine(case_id)`; open debates go to `memory`."""
    progress = Progress()
    finished: set[CaseKey] = set()
    for verdict in read_table(folder, "verdicts", ["how", "failed", "correct", "rounds"]).to_pylist():
        if mine(verdict["case_id"]):
            finished.add((verdict["case_id"], verdict["attempt"]))
            progress.count_verdict(verdict["how"], verdict["failed"], verdict["correct"], verdict["rounds"])
    started: set[CaseKey] = set()
    columns = ["case_id", "attempt", "reply_id", *USAGE, "reused_from"]
    for batch in read_raw_rows(folder, "turns", columns):
        for row in batch.to_pylist():
            if mine(row["case_id"]):
                started.add((row["case_id"], row["attempt"]))
                if not row["reply_id"].startswith(DECISION):
                    reused = row["reused_from"] is not None
                    progress.count_reply(*tokens_of(*(row[name] for name in USAGE)), reused=reused)
    for batch in read_raw_rows(folder, "events", ["case_id", "attempt"]):
        started.update(key for key in zip(*batch.to_pydict().values(), strict=True) if mine(key[0]))
    for key, debate in recorded_debates(folder, started - finished, memory).items():
        memory.put_debate(key, debate)
    cases = {case_id for case_id in read_table(folder, "cases", [])["case_id"].to_pylist() if mine(case_id)}
    return WriterState(finished, cases, progress)


def recorded_debates(folder: RunFolder, keys: Collection[CaseKey], memory: WriterCache) -> dict[CaseKey, OpenDebate]:
    """Recovers debates with their log-probabilities, as if they had no verdict yet."""
    found = {key: OpenDebate() for key in keys}
    for debate, row in _rows_of(
        found, folder, memory, "turns", "path", "reply_id", "supersedes", *USAGE, *SAMPLING_COLUMNS
    ):
        _replay_reply(debate, row)
    for debate, row in _rows_of(found, folder, memory, "tokens", "path", "reply_id", "logprob"):
        sampled = debate.logprobs.get(row["path"])
        if sampled is not None and row["logprob"] is not None and debate.reply_ids[row["path"]] == row["reply_id"]:
            debate.logprobs[row["path"]] = sampled._replace(logprobs=np.array(row["logprob"], np.float32))
    _replay_events(found, folder, memory)
    return found


def _rows_of(
    debates: Mapping[CaseKey, OpenDebate],
    folder: RunFolder,
    memory: WriterCache,
    table: str,
    *columns: str,
    only: pc.Expression | None = None,
) -> Iterator[tuple[OpenDebate, dict[str, Any]]]:
    """Rows of a table of these debates, as they were written."""
    case_ids = {case_id for case_id, _ in debates}
    mine = of_cases(case_ids) if only is None else of_cases(case_ids) & only
    for batch in (
        read_raw_rows(folder, table, ["case_id", "attempt", *columns], mine, memory.groups_of(case_ids))
        if case_ids
        else ()
    ):
        for row in batch.to_pylist():
            if (debate := debates.get((row["case_id"], row["attempt"]))) is not None:
                yield debate, row


def _replay_events(
    debates: Mapping[CaseKey, OpenDebate], folder: RunFolder, memory: WriterCache, only: pc.Expression | None = None
) -> None:
    rows = _rows_of(debates, folder, memory, "events", "kind", "path", "data", "at", only=only)
    for debate, row in sorted(rows, key=lambda pair: pair[1]["at"]):
        _replay_event(debate, row)


def recorded_rounds(folder: RunFolder, keys: Collection[CaseKey], memory: WriterCache) -> list[RoundValues]:
    """Recorded values of these debates by round."""
    found = {key: OpenDebate() for key in keys}
    _replay_events(found, folder, memory, pc.field("kind").isin(ROUND_EVENTS))
    return [values for debate in found.values() for values in debate.rounds.values()]


def _replay_reply(debate: OpenDebate, row: dict[str, Any]) -> None:
    if debate.accept(row["path"], row["reply_id"], row["supersedes"]):
        tokens = tokens_of(*(row[name] for name in USAGE))
        debate.use(row["reply_id"], row["supersedes"], row["model"], *tokens)
        if belongs_to_debate(row["case_id"], row["path"]):
            debate.logprobs[row["path"]] = SampledLogprobs.of(None, *(row[name] for name in SAMPLING_COLUMNS))


def _replay_event(debate: OpenDebate, row: dict[str, Any]) -> None:
    if row["kind"] in (CANCELLED, RESUMED):
        debate.cancelled = row["kind"] == CANCELLED
    debate.events[row["kind"], row["path"]] = crc32(row["data"].encode())
    if row["kind"] == ReplyAssessed.kind:
        add_assessment(debate, msgspec.json.decode(row["data"]), row["case_id"])
    elif row["kind"] in ROUND_EVENTS:
        debate.replace_round(Event(row["kind"], row["path"], msgspec.json.decode(row["data"])))


def recover_signals(folder: RunFolder, mine: Callable[[str], bool], memory: WriterCache | None = None) -> Signals:
    """Recovers the signals from the record, for the cases by `mine(case_id)`.

    Rounds are those of each case's latest attempt with a verdict, and of attempts without one after it. Reads the
    log-probabilities of the ended debates that have any: keep it off an event loop.
    """
    verdicts = [
        row for row in read_table(folder, "verdicts", ["failed", "correct"]).to_pylist() if mine(row["case_id"])
    ]
    correct = {(row["case_id"], row["attempt"]): row["correct"] for row in verdicts if not row["failed"]}
    latest: dict[str, int] = {}
    for row in verdicts:
        latest[row["case_id"]] = max(row["attempt"], latest.get(row["case_id"], 0))
    with_rounds, assessed = _debates_with_events(folder, mine)
    has_tokens = any(batch.num_rows for batch in read_raw_rows(folder, "tokens", ["case_id"]))
    with_replies = {key: None for key in (correct if has_tokens else assessed) if key in correct}
    memory = memory or WriterCache()
    signals = Signals()

    def counts(key: CaseKey) -> bool:
        return key[1] >= latest.get(key[0], 0)

    for keys in _chunks([key for key in with_rounds if counts(key) and key not in with_replies], _ROUNDS_TOGETHER):
        signals = signals.merge(SignalBatch(rounds=recorded_rounds(folder, keys, memory)).signals())
    for keys in _chunks(list(with_replies), _DEBATES_TOGETHER):
        batch = SignalBatch()
        for key, debate in recorded_debates(folder, keys, memory).items():
            batch.add_replies(debate, correct[key])
            batch.rounds += debate.rounds.values() if counts(key) else ()
        signals = signals.merge(batch.signals())
    return signals


def _debates_with_events(
    folder: RunFolder, mine: Callable[[str], bool]
) -> tuple[dict[CaseKey, None], dict[CaseKey, None]]:
    """Debates with values by round, and with assessments, in the order of the record."""
    with_rounds: dict[CaseKey, None] = {}
    assessed: dict[CaseKey, None] = {}
    kinds = pc.field("kind").isin((*ROUND_EVENTS, ReplyAssessed.kind))
    for batch in read_raw_rows(folder, "events", ["case_id", "attempt", "kind"], kinds):
        for case_id, attempt, kind in zip(*batch.to_pydict().values(), strict=True):
            if mine(case_id):
                (assessed if kind == ReplyAssessed.kind else with_rounds)[case_id, attempt] = None
    return with_rounds, assessed


def _chunks(keys: Sequence[CaseKey], size: int) -> Iterator[Sequence[CaseKey]]:
    """Consecutive parts of a sequence."""
    return (keys[first : first + size] for first in range(0, len(keys), size))


def recorded_results(folder: RunFolder, case_ids: Sequence[str], memory: WriterCache) -> dict[str, DebateResult]:
    """Results by case, of the latest attempt with a verdict; cases without one are left out."""
    groups, only = memory.groups_of(case_ids), of_cases(case_ids)
    results: dict[str, DebateResult] = {}
    for row in read_table(folder, "verdicts", only=only, groups=groups).to_pylist():
        known = results.get(row["case_id"])
        if known is None or row["attempt"] > known.attempt:
            results[row["case_id"]] = _result(row)
    columns = ["model", "prompt_tokens", "completion_tokens"]
    for row in read_table(folder, "turns", columns, only=only, groups=groups).to_pylist() if results else ():
        result = results.get(row["case_id"])
        if result is None or row["attempt"] != result.attempt or row["superseded"] or not row["model"]:
            continue
        of_model = result.usage.setdefault(row["model"], ModelUsage())
        of_model.add(row["prompt_tokens"], row["completion_tokens"])
    return results


def _result(row: dict[str, object]) -> DebateResult:
    """Result of a recorded verdict; without usage, which its row lacks."""
    values = {name: row[name] for name in VERDICT_COLUMNS}
    for name in _AS_JSON:
        raw = values[name]
        values[name] = msgspec.json.decode(raw) if isinstance(raw, str) else None
    return msgspec.convert({**values, "payload": values["payload"] or {}}, DebateResult)


def histories(folder: RunFolder, keys: Sequence[CaseKey], memory: WriterCache) -> list[History]:
    """Recorded history of each debate; of several replies on one path the one that is not superseded."""
    case_ids = {case_id for case_id, _ in keys}
    only, groups = of_cases(case_ids), memory.groups_of(case_ids)
    replies: dict[CaseKey, list[RecordedReply]] = {key: [] for key in keys}
    turns = read_table(folder, "turns", REPLAYED_COLUMNS, only, groups)
    for case_id, attempt, reply in recorded_replies(turns.filter(pc.invert(turns["superseded"]))):
        if (case_id, attempt) in replies:
            replies[case_id, attempt].append(reply)
    vectors: dict[CaseKey, dict[str, bytes]] = {key: {} for key in keys}
    for row in read_table(folder, "embeddings", None, only, groups).to_pylist():
        if (row["case_id"], row["attempt"]) in vectors:
            raw = np.asarray(row["vector"], np.float32).tobytes()
            vectors[row["case_id"], row["attempt"]][vector_key(row["encoder"], row["text_hash"])] = raw
    return [_history(replies[key], vectors[key]) for key in keys]


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
