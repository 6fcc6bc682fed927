"""From journal segments to Parquet: write the parts, rename them, commit them with one file, then drop the segments."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from moot.actors.failpoints import failpoint
from moot.actors.record.folder import Part, RunFolder, write_whole
from moot.actors.record.schema import JOURNAL, JUDGMENTS, TABLES, TOKENS, TURNS
from moot.actors.record.segments import read_segment


def tables_of(stream: str, batches: list[pa.RecordBatch]) -> dict[str, pa.Table]:
    """The tables that a stream's batches become; `replies` are cut into turns, tokens and judgments."""
    whole = pa.Table.from_batches(batches, JOURNAL[stream])
    if stream != "replies":
        return {stream: whole}
    with_tokens = whole.filter(pc.is_valid(whole["token"]))
    return {
        "turns": whole.select(TURNS.names).cast(TURNS),
        "tokens": with_tokens.select(TOKENS.names).cast(TOKENS),
        "judgments": _judgments(whole),
    }


def _judgments(replies: pa.Table) -> pa.Table:
    likely = pc.or_(
        pc.match_substring(pc.fill_null(replies["data"], ""), "support"),
        pc.match_substring(replies["path"], "judge/"),
    )
    replies = replies.filter(likely)
    rows = []
    columns = ["case_id", "attempt", "path", "role", "model", "data", "failure", "outcome", "reply_id"]
    for row in replies.select(columns).to_pylist():
        data = msgspec.json.decode(row["data"]) if row["data"] else {}
        judged = "score" in data and "support" in data
        if row["outcome"] == "invalid" or not (judged or (row["failure"] and "/judge/" in f"/{row['path']}")):
            continue
        rows.append(
            {
                "case_id": row["case_id"],
                "attempt": row["attempt"],
                "path": row["path"],
                "judge": row["role"],
                "model": row["model"],
                "support": data.get("support"),
                "score": data.get("score"),
                "rationale": data.get("rationale"),
                "failure": row["failure"],
                "reply_id": row["reply_id"],
            }
        )
    return pa.Table.from_pylist(rows, JUDGMENTS)


def compact(folder: RunFolder, name: str, segments: dict[str, list[tuple[Path, int | None]]]) -> None:
    """Replace segments by Parquet files.

    Args:
        name: stem of the new files.
        segments: by stream, the segments with the length that counts.

    A crash at any point leaves either the segments or the committed part to be read, never both and never neither.
    """
    files: dict[str, str] = {}
    for stream, paths in segments.items():
        batches = [batch for path, valid in paths for batch in read_segment(path, valid)]
        for table, content in tables_of(stream, batches).items():
            if content.num_rows:
                files[table] = _write_part(folder, table, name, content)
    covers = [path.name for paths in segments.values() for path, _ in paths]
    write_whole(folder.parts / f"{name}.json", msgspec.json.encode(Part(files, covers)))
    failpoint("compaction.manifest_written")
    for paths in segments.values():
        for path, _ in paths:
            path.unlink(missing_ok=True)


def _write_part(folder: RunFolder, table: str, name: str, content: pa.Table) -> str:
    target = folder.path / table / f"{name}.parquet"
    target.parent.mkdir(exist_ok=True)
    temporary = target.with_name(f".{name}.{os.getpid()}.tmp")
    with open(temporary, "wb") as file:
        pq.write_table(content, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
    failpoint("compaction.part_written")
    os.replace(temporary, target)
    failpoint("compaction.part_renamed")
    return f"{table}/{name}.parquet"


def compact_leftovers(folder: RunFolder, epoch: int) -> None:
    """Turn every segment that is left, of whatever owner, into one part; remove stray temporary files."""
    segments: dict[str, list[tuple[Path, int | None]]] = {}
    for stream in JOURNAL:
        found = list(folder.segments(stream))
        if found:
            segments[stream] = found
    if segments:
        compact(folder, f"e{epoch:04d}-rest", segments)
    for table in TABLES:
        for stray in (folder.path / table).glob(".*.tmp"):
            stray.unlink(missing_ok=True)
    listed = {folder.path / name for part in folder.committed_parts() for name in part.tables.values()}
    for table in TABLES:
        for orphan in set((folder.path / table).glob("*.parquet")) - listed:
            orphan.unlink()  # renamed, but its owner died before it was committed
    covered = {name for part in folder.committed_parts() for name in part.covers}
    for path in folder.journal.glob("e*.arrows"):
        if path.name in covered:
            path.unlink(missing_ok=True)
