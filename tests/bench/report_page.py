"""`moot report` as a whole: a record in, a page out, in a process of its own.

    python tests/bench/report_page.py [--json FILE] [--cases N ...] [--protocol P] [--keep DIR]

A run of the sample (72 cases, simulated model) is copied under new ids until it has as many cases as asked for; its
replies and their tokens are copied with it. Seconds and memory are of the whole command. The bars: 2 MB for 72 cases,
and for 100,000 debates (1390 copies) 20 MB and 15 s.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from harness import ReportRows, finish, options, parsed

import moot
from moot.actors.record.files import checksum, encode_file
from moot.actors.record.folder import RunFolder
from moot.actors.record.roll_files import Part
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.schema import TABLES
from moot.actors.record.sealed_yaml import seal_yaml
from moot.actors.record.tables import read_table

SAMPLE = 72
COPIES_IN_A_PART = 14
"""About a thousand cases, as a writer's part has them."""

MEGABYTES = {SAMPLE: 2.0, 100_080: 20.0}
SECONDS = {100_080: 15.0}


def multiplied(folder: Path, cases: int, out: Path) -> Path:
    """The record of a run whose cases are copies of another's."""
    shutil.copytree(folder, out, ignore=shutil.ignore_patterns("*.parquet", "parts"))
    (out / "run.yaml").write_bytes(seal_yaml({**read_run_yaml(RunFolder(folder)), "cases": cases}))
    (out / "parts").mkdir()
    tables = {name: read_table(folder, name).select(TABLES[name].names) for name in TABLES}
    copies = cases // SAMPLE
    for number, first in enumerate(range(0, copies, COPIES_IN_A_PART)):
        copied = range(first, min(copies, first + COPIES_IN_A_PART))
        part = f"e0001-w0-r{number:04}"
        files = {}
        for name, table in tables.items():
            several = pa.concat_tables([_copy(table, n) for n in copied])
            if several.num_rows:
                files[name] = f"{name}/{part}.parquet"
                (out / name).mkdir(exist_ok=True)
                pq.write_table(several, out / files[name], compression="zstd", write_page_checksum=True)
        checksums = {name: checksum(out / file) for name, file in files.items()}
        RunFolder(out).put(f"parts/{part}.json", encode_file(Part(files, [], checksums)))
    return out


def _copy(table: pa.Table, n: int) -> pa.Table:
    for name in ("case_id", "reply_id"):
        if name in table.column_names:
            table = _set(table, name, pc.binary_join_element_wise(table[name], f"{n:05}", "-"))
    if "question" in table.column_names:
        table = _set(table, "question", pc.binary_join_element_wise(table["question"], f"(copy {n})", " "))
    if "index" in table.column_names:
        table = _set(table, "index", pc.add(table["index"], n * SAMPLE))
    return table


def _set(table: pa.Table, name: str, column: Any) -> pa.Table:
    field = table.schema.field(name)
    return table.set_column(table.column_names.index(name), field, column.cast(field.type))


def measured(folder: Path, cases: int, out: Path) -> dict[str, Any]:
    """Seconds, peak memory and size of one command."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "moot", "report", str(folder), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"moot report ended with {process.returncode}")
    megabytes = out.stat().st_size / 1e6
    return {
        "cases": cases,
        "MB": megabytes,
        "s": wall_s,
        "CPU s": used.ru_utime + used.ru_stime,
        "GB of memory": used.ru_maxrss / 2**20,
        "ok": megabytes <= MEGABYTES.get(cases, megabytes) and wall_s <= SECONDS.get(cases, wall_s),
    }


def main() -> int:
    """Run the bench."""
    parser = options(__doc__)
    parser.add_argument("--cases", type=int, nargs="+", default=[SAMPLE, 10_080, 100_080])
    parser.add_argument("--protocol", default="selene")
    parser.add_argument("--keep", type=Path, help="where records and pages stay; a temporary folder without it")
    given = parsed(parser)
    rows = ReportRows()
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
        place = given.keep or Path(scratch)
        sample = place / f"{given.protocol}-{SAMPLE}"
        if not sample.exists():
            moot.run(task="sample", protocol=given.protocol, engine="inline", out=sample)
        for cases in given.cases:
            folder = place / f"{given.protocol}-{cases}"
            if not folder.exists():
                multiplied(sample, cases, folder)
            rows.add(measured(folder, cases, folder.with_suffix(".html")))
    return finish(given, pages=list(rows))


if __name__ == "__main__":
    sys.exit(main())
