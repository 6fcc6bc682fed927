"""Another run's replies, read by row from segments, from Parquet, and from both."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_writer import new_run, open_writer

from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.folder import RunFolder
from moot.actors.record.recorded_replies import RecordedReplies
from moot.actors.record.recorded_run import RecordedRun
from moot.actors.record.rows import batch_of
from moot.actors.record.schema import TOKEN_COLUMNS, TURNS
from moot.actors.record.tables import read_table
from moot.protocols.errors import RecordError

PLACES = st.tuples(st.sampled_from(["a", "b/0", "é"]), st.integers(0, 1), st.sampled_from(["p", "p/1", "q~1"]))


def row_of(number: int, place: tuple[str, int, str], supersedes: str | None) -> dict[str, Any]:
    case_id, attempt, path = place
    tokens: dict[str, Any] = {}
    if number % 3:
        alternatives = np.arange(2 * number, dtype=np.float32)
        alternatives[0] = np.nan
        tokens = {
            "token": pa.array([f"t{number}"] * number),
            "logprob": pa.array(np.full(number, -0.5, np.float32)),
            "alternatives": 2,
            "alt_token": pa.array([f"a{number}"] * (2 * number)),
            "alt_logprob": pa.array(alternatives),
        }
    return {
        "case_id": case_id,
        "attempt": attempt,
        "path": path,
        "reply_id": f"id-{number}",
        "supersedes": supersedes,
        "fingerprint": f"{number % 5:032x}",
        "outcome": "ok",
        "text": f"text {number}",
        **tokens,
    }


async def write(folder: Path, sessions: list[list[dict[str, Any]]], compacted: list[bool]) -> None:
    for rows, compact in zip(sessions, compacted, strict=True):
        async with open_writer(new_run(folder), compact=compact) as writer:
            for row in rows:
                writer.add_replies(batch_of("replies", [row]))


def by_table(folder: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    """The replies that count, as everybody else reads them."""
    tokens = {row["reply_id"]: row for row in read_table(folder, "tokens").to_pylist()}
    return {
        (row["case_id"], row["attempt"], row["path"]): {name: row[name] for name in TURNS.names}
        | {name: tokens.get(row["reply_id"], {}).get(name) for name in TOKEN_COLUMNS}
        for row in read_table(folder, "turns").to_pylist()
        if not row["superseded"]
    }


def by_row(run: RecordedRun) -> dict[tuple[str, int, str], dict[str, Any]]:
    return {
        run.key(number): {
            name: value.to_pylist() if isinstance(value := row.get(name), pa.Array) else value
            for name in (*TURNS.names, *TOKEN_COLUMNS)
        }
        for number, row in sorted(run.read(range(len(run))).items())
    }


@given(st.lists(st.tuples(PLACES, st.booleans()), max_size=12), st.lists(st.booleans(), min_size=2, max_size=2))
def test_rows_are_those_that_count(asked: list[tuple[tuple[str, int, str], bool]], compacted: list[bool]) -> None:
    """Superseded, repeated, in segments or in Parquet: one by one what `read_table` gives as a whole."""
    standing: dict[tuple[str, int, str], str] = {}
    rows = []
    for number, (place, replaces) in enumerate(asked, 1):
        supersedes = standing.get(place) if replaces else None
        rows.append(row_of(number, place, supersedes))
        if supersedes or place not in standing:
            standing[place] = f"id-{number}"
    half = len(rows) // 2
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        asyncio.run(write(folder, [rows[:half], rows[half:]], compacted))
        run = RecordedRun(folder)
        found, whole = by_row(run), by_table(folder)
        before = repr(found)
        assert before == repr({key: whole[key] for key in found})
        assert {key: row["reply_id"] for key, row in found.items()} == standing
        assert [run.key(number) for number in range(len(run))] == sorted(standing)
        compact_leftovers(RunFolder(folder), len(RunFolder(folder).epochs()))
        assert repr(by_row(run)) == before, "an opened record stays readable while its run continues"
        assert repr(by_row(RecordedRun(folder))) == before


async def test_a_folder_that_is_taken_away(tmp_path: Path) -> None:
    await write(tmp_path / "run", [[row_of(1, ("a", 0, "p"), None)]], [True])
    replies = RecordedReplies(tmp_path / "run", len)
    await replies.opened()
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    with pytest.raises(RecordError, match="cannot be read"):
        await replies.row(0)
