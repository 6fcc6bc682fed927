"""Lost replies of a damaged record: the asks without a reply in what is intact of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from moot.actors.record.compaction import stream_of
from moot.actors.record.folder import RunFolder
from moot.actors.record.parts import open_part
from moot.actors.record.schema import ABANDONED, ASKED, JOURNAL, CaseKey
from moot.actors.record.segments import intact_batches, read_segment
from moot.protocols.errors import RecordError

_USED = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True)
class LostReplies:
    """Lost replies.

    Attributes:
        asks: paths of the asks without a reply, by debate. A call in flight when a run was killed is one of them.
        tokens: of debates with a verdict, the tokens that it states and that no recorded reply has.
    """

    asks: dict[CaseKey, list[str]]
    tokens: dict[CaseKey, int]

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


def _total(asks: dict[CaseKey, list[str]]) -> int:
    return sum(map(len, asks.values()))


def find_lost_replies(folder: RunFolder) -> LostReplies:
    """Finds the lost replies, without changing anything.

    Each ask of a debate is on record; an ask without a reply, and without an event for its absence, has lost it.

    Raises:
        RecordError: a file that determines which files count is damaged.
    """
    left: dict[CaseKey, int] = {}
    for row in _intact_rows(folder, "verdicts", *_USED):
        left.setdefault(_key(row), _used(row))
    answered = set()
    for row in _intact_rows(folder, "turns", "path", *_USED):
        answered.add((_key(row), row["path"]))
        if _key(row) in left:
            left[_key(row)] -= _used(row)
    asked: dict[tuple[CaseKey, str], None] = {}
    for row in _intact_rows(folder, "events", "kind", "path"):
        step = _key(row), row["path"]
        if row["kind"] == ASKED:
            asked[step] = None
        elif row["kind"] == ABANDONED:
            answered.add(step)
    asks: dict[CaseKey, list[str]] = {}
    for key, path in asked:
        if (key, path) not in answered:
            asks.setdefault(key, []).append(path)
    return LostReplies(asks, {key: max(0, left[key]) for key in asks if key in left})


def _key(row: dict[str, Any]) -> CaseKey:
    return row["case_id"], row["attempt"]


def _used(row: dict[str, Any]) -> int:
    return sum(row[name] or 0 for name in _USED)


def _intact_rows(folder: RunFolder, table: str, *columns: str) -> Iterator[dict[str, Any]]:
    """Intact rows of a table, of files that no part lists, too."""
    names = ["case_id", "attempt", *columns]
    for path in sorted((folder.path / table).glob("*.parquet")):
        for group in intact_groups(path, names):
            yield from group.to_pylist()
    for path, valid in folder.segments(stream_of(table)):
        for batch in _intact_batches(path, valid, JOURNAL[stream_of(table)]):
            yield from batch.select(names).to_pylist()


def intact_groups(path: Path, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """Row groups of a Parquet file that can be read; none without its schema."""
    groups = 0
    with suppress(RecordError), open_part(path) as content:
        groups = content.groups
    for number in range(groups):
        with suppress(RecordError):
            with open_part(path) as content:
                group = content.read(columns, [number])
            yield group


def _intact_batches(path: Path, valid: int | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        for _ in read_segment(path, valid):
            pass
    except RecordError:
        yield from intact_batches(path, schema, valid)
    else:
        yield from read_segment(path, valid)
