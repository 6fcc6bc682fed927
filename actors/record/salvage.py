"""Salvage of a damaged record: intact data is kept, and every file that is replaced is quarantined first.

A verdict counts once, so it stays without its replies, and its debate does not run again. Of a debate without a
verdict, only the lost replies are paid for again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from moot.actors.record.compaction import compact_leftovers
from moot.actors.record.completeness import Losses, losses, unlisted_files
from moot.actors.record.files import checksum, encode_file, file_bytes, read_file, write_whole
from moot.actors.record.flush_log import SUFFIX, check_flush_log, last_flush
from moot.actors.record.folder import RunFolder
from moot.actors.record.lost_replies import CASE, LostReplies, find_lost_replies, intact_groups
from moot.actors.record.ownership import Ownership
from moot.actors.record.parts import open_part
from moot.actors.record.referenced_files import referenced_files
from moot.actors.record.roll_files import Part, decode_part, is_roll_name, roll_of, segment_name, stream_of_segment
from moot.actors.record.rows import sorted_json
from moot.actors.record.run_yaml import SALVAGED, read_run_yaml
from moot.actors.record.schema import ABANDONED, JOURNAL, LOST, TABLES, CaseKey
from moot.actors.record.sealed_yaml import seal_yaml
from moot.actors.record.segments import SegmentWriter, read_segment, salvage_segment
from moot.actors.record.tables import read_raw_rows
from moot.protocols.errors import RecordError

ASIDE = "damaged"
"""Subfolder of the run's folder for replaced files."""


def salvage(folder: RunFolder) -> list[str]:
    """Replaces damaged files by their intact part; `find_lost_replies` says before what is lost.

    Returns:
        What was done, one line per file.

    Raises:
        RunFolderBusy: another process owns the folder.
        RecordError: the record is in a bucket, or there is no run.
    """
    if folder.store is not None:
        raise RecordError(f"{folder.store.uri}: copy the folder from the bucket, and salvage the copy")
    if not folder.exists():
        raise RecordError(folder.missing())
    gone: Losses = {}
    owner = Ownership.acquire(folder, lambda found: gone.update(_losses(found)))
    try:
        loss = find_lost_replies(folder)
        report = [f"{file}: {fault}" for file, fault in gone.items()]
        report += [*_list_orphans(folder, gone), *_salvage_parts(folder), *_salvage_segments(folder)]
        report += _salvage_logs(folder)
        _note_what_is_left(folder)
        if report or loss.tokens or loss.cases:
            _end_lost_asks(folder, owner.epoch, loss)
            compact_leftovers(folder, owner.epoch)
            report += _remove_dependents(folder)
            _remark(folder)
        return [*report, *_set_ledger_aside(folder), *_restore_templates(folder)]
    finally:
        owner.release()


def _losses(folder: RunFolder) -> Losses:
    """Losses of the record, after files that cannot be parsed are quarantined: what they listed is listed again."""
    parsed: dict[Path, Callable[[], object]] = {folder.path / "epochs.json": folder.epochs}
    parsed |= {file: partial(decode_part, file) for file in folder.parts.glob("*.json")}
    damaged = {}
    for file, parse in sorted(parsed.items()):
        try:
            parse()
        except RecordError:
            _quarantine(folder, file)
            damaged[str(file.relative_to(folder.path))] = "it cannot be parsed"
    return losses(folder) | damaged


def _list_orphans(folder: RunFolder, gone: Losses) -> Iterator[str]:
    """Recreates the parts of Parquet files without one; where segments have the same rows, the first written count."""
    for stem, names in unlisted_files(folder, folder.committed_parts()).items():
        file = folder.parts / f"{stem}.json"
        old = decode_part(file) if file.exists() else Part({}, _replaced(folder, stem, gone))
        tables = {name.partition("/")[0]: name for name in names}
        checksums = {table: checksum(folder.path / name) for table, name in tables.items()}
        folder.put(f"parts/{stem}.json", encode_file(Part(old.tables | tables, old.covers, old.checksums | checksums)))
        yield f"parts/{stem}.json: written again, it lists {', '.join(sorted(names))}"


def _replaced(folder: RunFolder, part: str, gone: Losses) -> list[str]:
    """Segments that a part without its list has replaced: those of its roll, or those of several rolls that are not
    there."""
    if is_roll_name(part):
        flushed = last_flush(folder.flush_log(part))
        names = [segment_name(part, stream) for stream in (flushed.written if flushed is not None else ())]
    else:
        names = [file.removeprefix("journal/") for file in gone if file.startswith("journal/")]
    return [name for name in names if not (folder.journal / name).exists()]


def _salvage_parts(folder: RunFolder) -> Iterator[str]:
    for file in sorted(folder.parts.glob("*.json")):
        part = decode_part(file)
        checksums, report = dict(part.checksums), []
        for table, name in part.tables.items():
            path = folder.path / name
            if table in checksums and path.exists() and checksum(path) == checksums[table]:
                continue
            report.append(_rewrite(folder, path))
            checksums[table] = checksum(path)
        if report:
            write_whole(file, encode_file(Part(part.tables, part.covers, checksums)))
            yield from report


def _rewrite(folder: RunFolder, path: Path) -> str:
    """Keep the row groups of a Parquet file that can be read."""
    name = path.relative_to(folder.path)
    kept = list(intact_groups(path))
    _replace(folder, path, pa.concat_tables(kept) if kept else TABLES[name.parts[0]].empty_table())
    return f"{name}: {len(kept):,} row groups kept" if kept else f"{name}: nothing of it can be read"


def _salvage_segments(folder: RunFolder) -> Iterator[str]:
    for path, valid, least in list(folder.segments()):
        try:
            for _ in read_segment(path, valid, least):
                pass
        except RecordError:
            draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            batches = salvage_segment(path, draft, JOURNAL[stream_of_segment(path.name)], valid)
            _quarantine(folder, path)
            if batches:
                os.replace(draft, path)
            yield f"journal/{path.name}: {batches} whole batches kept"


def _salvage_logs(folder: RunFolder) -> Iterator[str]:
    """Quarantines the flush logs that are damaged, or that state more than is left."""
    covered = {roll_of(name) for name in folder.covered()}
    for log in sorted(folder.parts.glob(f"*{SUFFIX}")):
        roll, flushed = log.name.removesuffix(SUFFIX), last_flush(log)
        stated = {} if flushed is None or roll in covered else flushed.least()
        left = {path.name: file_bytes(path) for path in folder.journal.glob(f"{roll}-*.arrows")}
        try:
            check_flush_log(log)
            damaged = any(left.get(segment_name(roll, stream), 0) < length for stream, length in stated.items())
        except RecordError:
            damaged = True
        if damaged:
            _quarantine(folder, log)
            yield f"parts/{log.name}: moved to damaged/"


def _note_what_is_left(folder: RunFolder) -> None:
    """Set the valid length of each segment to that of its salvaged part, and forget rolls of which nothing is left."""
    epochs, covered = folder.epochs(), folder.covered()
    rolls = {roll_of(name) for name in (*covered, *(path.name for path in folder.journal.glob("e*.arrows")))}
    for epoch in epochs:
        left = {name: folder.journal / name for name in epoch.valid_bytes if (folder.journal / name).exists()}
        epoch.valid_bytes = {name: min(epoch.valid_bytes[name], file_bytes(path)) for name, path in left.items()}
        epoch.rolls = [roll for roll in epoch.rolls if roll in rolls]
    folder.put("epochs.json", encode_file(epochs))


def _remark(folder: RunFolder) -> None:
    """Note in run.yaml that the record was salvaged: figures lack what was lost."""
    with suppress(RecordError):  # a damaged run.yaml stays one; verification says so
        folder.put("run.yaml", seal_yaml(read_run_yaml(folder) | {SALVAGED: True}))


def _set_ledger_aside(folder: RunFolder) -> Iterator[str]:
    """Remove a damaged limits.json: the next session warns as of a lost one."""
    ledger = folder.path / "limits.json"
    try:
        read_file(ledger, dict[str, Any])
    except FileNotFoundError:
        return
    except RecordError:
        _quarantine(folder, ledger)
        yield "limits.json: moved to damaged/; what a killed session had reserved is unknown"


def _restore_templates(folder: RunFolder) -> Iterator[str]:
    """Write the damaged prompt templates again that this version of moot has."""
    try:
        settings = read_run_yaml(folder)
    except RecordError:
        return  # verification says so
    for file in referenced_files(folder.path, settings):
        if file.fault and file.content is not None:
            _quarantine(folder, folder.path / file.name)
            folder.put(file.name, file.content)
            yield f"{file.name}: written again"


def _quarantine(folder: RunFolder, path: Path) -> None:
    if not path.exists():
        return
    target = folder.path / ASIDE / path.relative_to(folder.path)
    number = 0
    while target.exists():
        number += 1
        target = target.with_name(f"{path.name}.{number}")
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, target)


def _replace(folder: RunFolder, path: Path, rows: pa.Table) -> None:
    """Replace a Parquet file, which is quarantined first."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    pq.write_table(rows, draft, compression="zstd", write_page_checksum=True)
    _quarantine(folder, path)
    os.replace(draft, path)


def _end_lost_asks(folder: RunFolder, epoch: int, loss: LostReplies) -> None:
    """Record the end of the lost asks of debates with a verdict, with the tokens that their verdict states, so that
    figures and budgets still include them; and which cases are lost."""
    rows = [_lost((case_id, 0), CASE) for case_id in loss.cases]
    for key, tokens in loss.tokens.items():
        rows += [_lost(key, path, 0 if number else tokens) for number, path in enumerate(loss.asks[key])]
    if rows:
        writer = SegmentWriter(folder.segment_path(epoch, 0, 0, "events"), JOURNAL["events"])
        writer.append(pa.RecordBatch.from_pylist(rows, JOURNAL["events"]))
        writer.close()


def _lost(key: CaseKey, path: str, tokens: int = 0) -> dict[str, Any]:
    data = {"why": LOST, "model": "", "attempts": 0 if path == CASE else 1, "tokens_at_most": tokens}
    event = {"kind": ABANDONED, "path": path, "data": sorted_json(data), "at": time.time()}
    return {"case_id": key[0], "attempt": key[1], **event}


def _remove_dependents(folder: RunFolder) -> Iterator[str]:
    """Removes rows of lost replies: without the reply nobody knows whether they are superseded, and a repeated ask has
    new ones. The folder's owner calls this when everything is in parts."""
    ids = (batch["reply_id"].to_pylist() for batch in read_raw_rows(folder, "turns", ["reply_id"]))
    known = pa.array(chain.from_iterable(ids), pa.string())
    for file in sorted(folder.parts.glob("*.json")):
        part = decode_part(file)
        checksums = dict(part.checksums)
        for table in sorted({"tokens", "judgments"} & part.tables.keys()):
            path = folder.path / part.tables[table]
            with open_part(path) as content:
                rows = content.read()
            kept = rows.filter(pc.is_in(rows["reply_id"], value_set=known))
            if kept.num_rows < rows.num_rows:
                _replace(folder, path, kept)
                checksums[table] = checksum(path)
                yield f"{part.tables[table]}: {rows.num_rows - kept.num_rows:,} rows of lost replies removed"
        if checksums != part.checksums:
            write_whole(file, encode_file(Part(part.tables, part.covers, checksums)))
