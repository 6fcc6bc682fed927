"""Lost replies of a damaged record: the asks without a reply in what is intact of it, and what verdicts state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.compaction import stream_of
from moot.actors.record.folder import RunFolder, Segment
from moot.actors.record.parts import open_part
from moot.actors.record.rows import DECISION, INVALID_SUFFIX, step_of
from moot.actors.record.schema import ABANDONED, ASKED, JOURNAL, LOST, CaseKey
from moot.actors.record.segments import intact_batches, read_segment
from moot.actors.record.tables import read_table
from moot.protocols.case import is_shared_id
from moot.protocols.errors import RecordError

_USED = ("prompt_tokens", "completion_tokens")
_LOST = f'"why":"{LOST}"'
"""In the data of an event `abandoned` that ends a lost ask."""

_KEY = ["case_id", "attempt"]


CASE = "case"
"""Path of the event that says that the row of a case was lost."""


@dataclass(frozen=True)
class LostReplies:
    """Lost replies, and lost cases.

    Attributes:
        asks: paths of the asks without a reply, by debate. A call in flight when a run was killed is one of them. A
            reply that a verdict states and whose ask is lost, too, has a path of its own.
        tokens: of debates with a verdict, the tokens that it states and that no recorded reply has.
        cases: ids of cases of which there are rows, but no case.
    """

    asks: dict[CaseKey, list[str]]
    tokens: dict[CaseKey, int]
    cases: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Consequences for users, one per line; none without lost replies."""
        ended = {key: paths for key, paths in self.asks.items() if key in self.tokens}
        others = {key: paths for key, paths in self.asks.items() if key not in self.tokens}
        if ended:
            yield (
                f"{_total(ended):,} replies of {len(ended):,} debates with a verdict are lost. The verdicts stay, and "
                f"the debates do not run again. The lost replies took {sum(self.tokens.values()):,} tokens"
            )
        if others:
            yield (
                f"{_total(others):,} asks of {len(others):,} debates without a verdict have no reply: it is lost, or "
                "was in flight when the run ended. `moot run` pays for them again"
            )
        if self.cases:
            yield f"the questions of {len(self.cases):,} cases are lost; what they led to stays"


def _total(asks: dict[CaseKey, list[str]]) -> int:
    return sum(map(len, asks.values()))


@dataclass
class _Lacking:
    """What a verdict states and no row that was read has."""

    calls: int
    tokens: int


Step = tuple[CaseKey, str]


def find_lost_replies(folder: RunFolder) -> LostReplies:
    """Finds the lost replies, without changing anything.

    Each ask of a debate is on record; an ask without a reply, and without an event for its absence, has lost it, and so
    has a verdict that states more replies or tokens than are there.

    Raises:
        RecordError: a file that determines which files count is damaged.
    """
    lacking: dict[CaseKey, _Lacking] = {}
    seen: dict[str, None] = {}  # ids of the cases of all rows, in the order of reading
    for row in _intact_rows(folder, "verdicts", *_KEY, "calls", *_USED):
        lacking.setdefault(_key(row), _Lacking(row["calls"] or 0, _used(row)))
        seen[row["case_id"]] = None
    answered = _answered(folder, lacking, seen)
    asked, known = _asked(folder, lacking, answered, seen)
    lacking = {key: each for key, each in lacking.items() if each.calls > 0 or each.tokens > 0}
    asks: dict[CaseKey, list[str]] = {key: [] for key in lacking}
    for key, path in asked:
        asks.setdefault(key, []).append(path)
    for key, each in lacking.items():
        asks[key] += [f"lost/{number}" for number in range(len(asks[key]), max(each.calls, 1))]
    tokens = {key: max(0, each.tokens) for key, each in lacking.items()}
    return LostReplies(asks, tokens, _lost_cases(folder, known, seen))


def _answered(folder: RunFolder, lacking: dict[CaseKey, _Lacking], seen: dict[str, None]) -> set[Step]:
    """Asks with a reply; what verdicts lack is less by the replies that count."""
    answered, superseded = set[Step](), set[str]()
    found: dict[str, tuple[CaseKey, int, bool]] = {}  # by id: it may be in a part and in the segments it replaces
    for row in _intact_rows(folder, "turns", *_KEY, "path", "reply_id", "supersedes", *_USED):
        seen[row["case_id"]] = None
        answered.add((_key(row), row["path"]))
        is_call = row["path"] == step_of(row["path"]) and not row["reply_id"].startswith(DECISION)
        found[row["reply_id"]] = _key(row), _used(row), is_call
        if row["supersedes"]:
            superseded |= {row["supersedes"], row["supersedes"] + INVALID_SUFFIX}
    for reply_id, (key, used, is_call) in found.items():
        if key in lacking and reply_id not in superseded:
            lacking[key].tokens -= used
            lacking[key].calls -= is_call
    return answered


def _asked(
    folder: RunFolder, lacking: dict[CaseKey, _Lacking], answered: set[Step], seen: dict[str, None]
) -> tuple[list[Step], set[str]]:
    """Asks without a reply or an event for its absence, but not those of verdicts that lack nothing; and the cases that
    are known to be lost. What a verdict lacks and is known to be lost is no longer lacking."""
    asked: dict[Step, None] = {}
    lost_cases = set[str]()
    for row in _intact_rows(folder, "events", *_KEY, "kind", "path", "data"):
        step = _key(row), row["path"]
        seen[row["case_id"]] = None
        if row["kind"] == ASKED:
            asked[step] = None
        elif row["kind"] == ABANDONED:
            answered.add(step)
            if _LOST in row["data"] and row["path"] == CASE:
                lost_cases.add(row["case_id"])
            elif _LOST in row["data"] and step[0] in lacking:
                lacking[step[0]] = _Lacking(0, 0)
    whole = {key for key, each in lacking.items() if each.calls <= 0 and each.tokens <= 0}
    return [step for step in asked if step not in answered and step[0] not in whole], lost_cases


def _lost_cases(folder: RunFolder, known: set[str], seen: dict[str, None]) -> list[str]:
    known = known | {row["case_id"] for row in _intact_rows(folder, "cases", "case_id")}
    seen |= {row["case_id"]: None for row in _intact_rows(folder, "embeddings", "case_id")}
    return [case_id for case_id in seen if case_id not in known and not is_shared_id(case_id)]


def known_to_be_lost(folder: RunFolder) -> pa.Table:
    """Events that say that a reply or a case was lost by damage: `case_id`, `attempt`, `path`. Raises like
    `read_table`."""
    abandoned = read_table(folder, "events", ["data"], pc.field("kind") == ABANDONED)  # the data of others is large
    return abandoned.filter(pc.match_substring(abandoned["data"], _LOST)).select([*_KEY, "path"])


def lost_cases(known_lost: pa.Table) -> pa.Array:
    """Ids of the cases whose rows were lost by damage; of `known_to_be_lost`."""
    return pc.unique(known_lost.filter(pc.equal(known_lost["path"], CASE))["case_id"])


def replies_that_verdicts_lack(folder: RunFolder, known_lost: pa.Table) -> tuple[int, int]:
    """Numbers of replies and tokens that verdicts state and that are not on record, without those known to be lost.

    A verdict states at most the usage that its replies report, so what it lacks was lost.

    Args:
        known_lost: see `known_to_be_lost`.

    Raises:
        RecordError: the record cannot be read.
    """
    lost = known_lost.filter(pc.not_equal(known_lost["path"], CASE)).select(_KEY)
    turns = read_table(folder, "turns", ["path", *_USED])
    turns = turns.filter(pc.invert(turns["superseded"]))
    is_call = pc.invert(
        pc.or_(pc.match_substring_regex(turns["path"], r"(~1|~cut\d+)$"), pc.starts_with(turns["reply_id"], DECISION))
    )
    there = turns.select(_KEY).append_column("calls_there", pc.cast(is_call, pa.int64()))
    there = there.append_column("tokens_there", _tokens(turns)).group_by(_KEY)
    sums = there.aggregate([("calls_there", "sum"), ("tokens_there", "sum")])
    stated = read_table(folder, "verdicts", ["calls", *_USED]).select([*_KEY, "calls", *_USED])
    both = stated.join(lost, _KEY, join_type="left anti").join(sums, _KEY, join_type="left outer")
    calls = _lacking(pc.cast(both["calls"], pa.int64()), both["calls_there_sum"])
    return calls, _lacking(_tokens(both), both["tokens_there_sum"])


def _tokens(rows: pa.Table) -> pa.ChunkedArray:
    known = [pc.cast(pc.fill_null(rows[name], 0), pa.int64()) for name in _USED]
    return pc.add(*known)


def _lacking(stated: pa.ChunkedArray, there: pa.ChunkedArray) -> int:
    lacking = pc.subtract(pc.fill_null(stated, 0), pc.fill_null(there, 0))
    return int(pc.sum(pc.max_element_wise(lacking, 0)).as_py() or 0)


def _key(row: dict[str, Any]) -> CaseKey:
    return row["case_id"], row["attempt"]


def _used(row: dict[str, Any]) -> int:
    return sum(row[name] or 0 for name in _USED)


def _intact_rows(folder: RunFolder, table: str, *columns: str) -> Iterator[dict[str, Any]]:
    """Intact rows of a table, of files that no part lists, too."""
    names = list(columns)
    whole = set(_whole_files(folder, table))
    for path in sorted((folder.path / table).glob("*.parquet")):
        # of other files with all columns: salvage keeps a group whole or not at all
        for group in intact_groups(path, names if path in whole else None):
            yield from group.select(names).to_pylist()
    for segment in folder.segments(stream_of(table)):
        for batch in _intact_batches(segment, JOURNAL[stream_of(table)]):
            yield from batch.select(names).to_pylist()


def _whole_files(folder: RunFolder, table: str) -> Iterator[Path]:
    """Parquet files with the checksum that their part states: salvage leaves them as they are."""
    for part in folder.committed_parts():
        if part.checksums.get(table) is not None and table in part.tables:
            with suppress(RecordError):
                yield folder.table_file(part, table)


def intact_groups(path: Path, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """Row groups of a Parquet file of which these columns can be read (None: all); none without its schema."""
    groups = 0
    with suppress(RecordError), open_part(path) as content:
        groups = content.groups
    for number in range(groups):
        with suppress(RecordError):
            with open_part(path) as content:
                group = content.read(columns, [number])
            yield group


def _intact_batches(segment: Segment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        for _ in read_segment(*segment):
            pass
    except RecordError:
        yield from intact_batches(segment.path, schema, segment.valid_bytes)
    else:
        yield from read_segment(*segment)
