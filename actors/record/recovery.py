"""Recovery from the journal: the state of a starting writer, and the history of a resumed debate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.models.usage_totals import UsageTotals
from moot.actors.record.debate_result import VERDICT_COLUMNS, DebateResult
from moot.actors.record.folder import RunFolder
from moot.actors.record.open_debate import SAMPLING_COLUMNS, OpenDebate, SampledLogprobs
from moot.actors.record.parts import Groups
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
from moot.actors.record.signal_aggregator import add_assessment, belongs_to_debate
from moot.actors.record.tables import of_cases, read_raw_pieces, read_raw_rows, read_table
from moot.actors.record.writer_cache import WriterCache
from moot.protocols.messages import Ask, Event, Unreadable
from moot.protocols.round_values import ROUND_EVENTS, RoundValues
from moot.protocols.rubrics.events import ReplyAssessed

EVENT_COLUMNS = ["case_id", "attempt", "kind", "path", "data", "at"]
"""Columns of `events` for `replay_event`."""

_TOKENS_OF = ("case_id", "attempt", "path", "reply_id")
_REPLY_COLUMNS = [*_TOKENS_OF, "supersedes", *USAGE, *SAMPLING_COLUMNS]
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
    case_ids = {case_id for case_id, _ in keys}
    for row in reply_rows(folder, of_cases(case_ids), memory.groups_of(case_ids)) if keys else ():
        if (debate := found.get((row["case_id"], row["attempt"]))) is not None:
            replay_reply(debate, row)
    _replay_events(found, folder, memory)
    return found


def reply_rows(
    folder: RunFolder, only: pc.Expression | None = None, groups: Groups | None = None
) -> Iterator[dict[str, Any]]:
    """Rows of replies as they were written, for `replay_reply`: with `logprob` where there are any, an array."""
    columns = {"turns": _REPLY_COLUMNS, "tokens": [*_TOKENS_OF, "logprob"]}
    for piece in read_raw_pieces(folder, columns, only, groups):
        logprobs = _logprobs(piece["tokens"]) if "tokens" in piece else {}
        for row in piece["turns"].to_pylist() if "turns" in piece else ():
            row["logprob"] = logprobs.get(tuple(row[name] for name in _TOKENS_OF))
            yield row


def _logprobs(tokens: pa.Table) -> dict[tuple[Any, ...], npt.NDArray[np.float32]]:
    """Log-probabilities of each reply with any, copied, so that the table can be freed."""
    column = tokens["logprob"].combine_chunks()
    offsets, known = column.offsets.to_numpy(), column.is_valid().to_pylist()
    values = column.values.to_numpy(zero_copy_only=False)
    keys = zip(*(tokens[name].to_pylist() for name in _TOKENS_OF), strict=True)
    return {key: values[offsets[row] : offsets[row + 1]].copy() for row, key in enumerate(keys) if known[row]}


def _replay_events(
    debates: Mapping[CaseKey, OpenDebate], folder: RunFolder, memory: WriterCache, only: pc.Expression | None = None
) -> None:
    case_ids = {case_id for case_id, _ in debates}
    mine = of_cases(case_ids) if only is None else of_cases(case_ids) & only
    rows = []
    for batch in read_raw_rows(folder, "events", EVENT_COLUMNS, mine, memory.groups_of(case_ids)) if case_ids else ():
        rows += [row for row in batch.to_pylist() if (row["case_id"], row["attempt"]) in debates]
    for row in sorted(rows, key=lambda row: row["at"]):
        replay_event(debates[row["case_id"], row["attempt"]], row)


def recorded_rounds(folder: RunFolder, keys: Collection[CaseKey], memory: WriterCache) -> list[RoundValues]:
    """Recorded values of these debates by round."""
    found = {key: OpenDebate() for key in keys}
    _replay_events(found, folder, memory, pc.field("kind").isin(ROUND_EVENTS))
    return [values for debate in found.values() for values in debate.rounds.values()]


def replay_reply(debate: OpenDebate, row: dict[str, Any]) -> None:
    """Add a row of `reply_rows` to its debate."""
    if debate.accept(row["path"], row["reply_id"], row["supersedes"]):
        tokens = tokens_of(*(row[name] for name in USAGE))
        debate.use(row["reply_id"], row["supersedes"], row["model"], *tokens)
        if belongs_to_debate(row["case_id"], row["path"]):
            sampled = SampledLogprobs.of(row["logprob"], *(row[name] for name in SAMPLING_COLUMNS))
            debate.logprobs[row["path"]] = sampled


def replay_event(debate: OpenDebate, row: dict[str, Any]) -> None:
    """Add a row of `EVENT_COLUMNS` to its debate; rows come in the order of `at`."""
    if row["kind"] in (CANCELLED, RESUMED):
        debate.cancelled = row["kind"] == CANCELLED
    debate.events[row["kind"], row["path"]] = crc32(row["data"].encode())
    if row["kind"] == ReplyAssessed.kind:
        add_assessment(debate, msgspec.json.decode(row["data"]), row["case_id"])
    elif row["kind"] in ROUND_EVENTS:
        debate.replace_round(Event(row["kind"], row["path"], msgspec.json.decode(row["data"])))


def recorded_results(folder: RunFolder, case_ids: Sequence[str], memory: WriterCache) -> dict[str, DebateResult]:
    """Results by case, of the latest attempt with a verdict; cases without one are left out."""
    groups, only = memory.groups_of(case_ids), of_cases(case_ids)
    results: dict[str, DebateResult] = {}
    for row in read_table(folder, "verdicts", only=only, groups=groups).to_pylist():
        known = results.get(row["case_id"])
        if known is None or row["attempt"] > known.attempt:
            results[row["case_id"]] = _result(row)
    columns = ["model", *USAGE]
    for row in read_table(folder, "turns", columns, only=only, groups=groups).to_pylist() if results else ():
        result = results.get(row["case_id"])
        if result is None or row["attempt"] != result.attempt or row["superseded"] or not row["model"]:
            continue
        of_model = result.usage.setdefault(row["model"], UsageTotals())
        of_model.add(*tokens_of(*(row[name] for name in USAGE)))
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
