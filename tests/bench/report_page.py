"""Readers of large records against an earlier commit: `moot report`, `show`, `compare` and `view`.

    python tests/bench/report_page.py [--json FILE] [--protocol P] [--cases N ...] [--view-cases N] [--before COMMIT]
        [--keep DIR]

Two runs of the sample (72 cases, simulated model, two seeds) are copied under new ids until they have as many cases as
asked for. Both versions read the same records. Each command is a process of its own, first of the earlier version, then
of this one, seven times in turn (of 10,000 cases and more once): seconds, seconds of CPU and MB (peak memory) are the
least of each version's processes, because others use the machine, too. A ratio is this version over the earlier one.

The bars. Of 100,080 cases: `report` 0.4 of the time and half the memory, `show` and `compare` 0.4 of the time. Of 72
cases: no slower, that is 1.05 of the time at most. A page: 2 MB for 72 cases, 20 MB for 100,080. `moot view` of a
million cases, whatever the earlier version does: the first rows in 2 s, each sort or filter in 0.5 s, and 400 MB.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

from harness import ReportRows, finish, options, parsed

ROOT = Path(__file__).parents[2]
SAMPLE, LARGE, MILLION = 72, 100_080, 1_000_008
SEEDS = (0, 1)
COPIES_IN_A_PART = 14
"""About a thousand cases, as a writer's part has them."""

TIMES = {("report", SAMPLE): 1.05, ("show", SAMPLE): 1.05, ("compare", SAMPLE): 1.05}
TIMES |= {("report", LARGE): 0.4, ("show", LARGE): 0.4, ("compare", LARGE): 0.4}
MEMORY = {("report", LARGE): 0.5}
PAGE_MB = {SAMPLE: 2.0, LARGE: 20.0}
VIEW_BARS = {"first rows s": 2.0, "slowest s": 0.5, "MB": 400.0}
REPEATS, MANY_CASES = 7, 10_000

ORDERS: dict[str, dict[str, Any]] = {
    "sort by text": {"sort": "question", "desc": True},
    "sort by number": {"sort": "confidence"},
    "outcome": {"outcome": "wrong"},
    "filter a number": {"filters": json.dumps({"confidence": "> 0.5"})},
    "filter a text": {"filters": json.dumps({"question": "fever"})},
    "search": {"q": "copy 77"},
}


class Version(NamedTuple):
    """A version of moot: a tree that has the package."""

    tree: Path

    def started(self, *args: str, **options: Any) -> subprocess.Popen[str]:
        """A `moot` command, begun in the tree: Python looks for packages in its current folder first."""
        env = os.environ | {"PYTHONPATH": str(self.tree)}
        command = [sys.executable, "-m", "moot", *args]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.tree, env=env, **options)


class Used(NamedTuple):
    """What a process used."""

    wall_s: float
    cpu_s: float
    megabytes: float


# Records


def make_record(place: Path, protocol: str, seed: int, cases: int, without: tuple[str, ...] = ()) -> None:
    """The record of a run whose cases are copies of the sample's; in a process that imports what the bench does not:
    on Linux, the peak memory of a command is at least that of the process that began it."""
    import moot

    sample = place / f"{protocol}-{seed}-{cases}.sample"
    shutil.rmtree(sample, ignore_errors=True)
    moot.run(task="sample", protocol=protocol, engine="inline", seed=seed, out=sample)
    _multiply(sample, cases, record_at(place, protocol, seed, cases), without)
    shutil.rmtree(sample)


def make_records(place: Path, protocol: str, cases: list[int], view_cases: int) -> None:
    """Two records of each number of cases, and one for the pages, where they are not there yet."""
    wanted: list[tuple[int, int, tuple[str, ...]]] = [(seed, number, ()) for number in cases for seed in SEEDS]
    if view_cases and view_cases not in cases:  # no page of cases reads what takes the most space
        wanted.append((SEEDS[0], view_cases, ("tokens", "embeddings")))
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        jobs = [
            processes.submit(make_record, place, protocol, seed, number, without)
            for seed, number, without in wanted
            if not record_at(place, protocol, seed, number).exists()
        ]
        for job in jobs:
            job.result()


def record_at(place: Path, protocol: str, seed: int, cases: int) -> Path:
    """Folder of a record."""
    return place / f"{protocol}-{seed}-{cases}"


def _multiply(folder: Path, cases: int, out: Path, without: tuple[str, ...]) -> None:
    import pyarrow.parquet as pq
    import yaml

    from moot.actors.record.files import checksum, encode_file
    from moot.actors.record.folder import RunFolder
    from moot.actors.record.roll_files import Part
    from moot.actors.record.run_yaml import read_run_yaml
    from moot.actors.record.schema import TABLES
    from moot.actors.record.tables import read_table

    made = out.with_suffix(".partial")
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(folder, made, ignore=shutil.ignore_patterns("*.parquet", "parts"))
    settings = {**read_run_yaml(RunFolder(folder)), "cases": cases}
    (made / "run.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))  # earlier versions know no seal
    (made / "parts").mkdir()
    tables = {name: read_table(folder, name).select(TABLES[name].names) for name in TABLES if name not in without}
    copies = cases // SAMPLE
    for number, first in enumerate(range(0, copies, COPIES_IN_A_PART)):
        copied = range(first, min(copies, first + COPIES_IN_A_PART))
        part = f"e0001-w0-r{number:04}"
        files = {}
        for name, table in tables.items():
            if table.num_rows:
                files[name] = f"{name}/{part}.parquet"
                (made / name).mkdir(exist_ok=True)
                pq.write_table(_copies(table, copied), made / files[name], compression="zstd", write_page_checksum=True)
        checksums = {name: checksum(made / file) for name, file in files.items()}
        RunFolder(made).put(f"parts/{part}.json", encode_file(Part(files, [], checksums)))
    made.rename(out)


def _copies(table: Any, copied: range) -> Any:
    """A table several times, each copy with ids, questions and places in the task of its own."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    several = pa.concat_tables([table] * len(copied))
    numbers = pa.array(np.repeat(np.array(copied), table.num_rows))
    ids = pc.utf8_lpad(numbers.cast(pa.string()), 5, "0")
    columns = {
        "case_id": lambda old: pc.binary_join_element_wise(old, ids, "-"),
        "reply_id": lambda old: pc.binary_join_element_wise(old, ids, "-"),
        "question": lambda old: pc.binary_join_element_wise(
            old, pc.binary_join_element_wise("(copy ", numbers.cast(pa.string()), ")", ""), " "
        ),
        "index": lambda old: pc.add(old, pc.multiply(numbers, SAMPLE)),
    }
    for place, field in enumerate(table.schema):
        if field.name in columns:
            several = several.set_column(place, field, columns[field.name](several[field.name]).cast(field.type))
    return several


def tree_of(commit: str, place: Path) -> Path:
    """The files of an earlier commit."""
    tree = place / f"moot-{commit}"
    if not tree.exists():
        tree.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x"], input=archive.stdout, cwd=tree, check=True)
    return tree


# Commands


def run_command(version: Version, *args: str) -> Used:
    """Wall time, CPU time and peak memory of a command, from its start to its end."""
    started = time.perf_counter()
    process = version.started(*args)
    assert process.stdout is not None
    process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"moot {args[0]} of {version.tree} ended with {process.returncode}")
    return Used(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)


def compare_versions(before: Version, now: Version, records: list[Path], cases: int) -> Iterator[dict[str, Any]]:
    """A row for each command on records of so many cases."""
    page = records[0].with_suffix(".html")
    first, second = map(str, records)
    commands = {"report": [first, "--out", str(page)], "show": [first], "compare": [first, second]}
    for command, args in commands.items():
        used: dict[Version, list[Used]] = {before: [], now: []}
        for _ in range(REPEATS if cases < MANY_CASES else 1):
            for version, each in used.items():
                each.append(run_command(version, command, *args))
        old, new = (Used(*map(min, zip(*each, strict=True))) for each in used.values())
        page_mb = page.stat().st_size / 1e6 if command == "report" else None
        key = (command, cases)
        yield {
            "command": command,
            "cases": cases,
            "s before": old.wall_s,
            "s": new.wall_s,
            "ratio": new.wall_s / old.wall_s,
            "ratio of CPU": new.cpu_s / old.cpu_s,
            "MB before": old.megabytes,
            "MB": new.megabytes,
            "ratio of memory": new.megabytes / old.megabytes,
            "page MB": page_mb,
            "ok": new.wall_s / old.wall_s <= TIMES.get(key, float("inf"))
            and new.megabytes / old.megabytes <= MEMORY.get(key, float("inf"))
            and (page_mb is None or page_mb <= PAGE_MB.get(cases, float("inf"))),
        }


# Pages of `moot view`


@contextmanager
def pages_of(version: Version, record: Path) -> Iterator[tuple[str, int]]:
    """Address and process id of `moot view` of a record."""
    process = version.started("view", str(record), "--port", "0")
    try:
        assert process.stdout is not None
        yield next(word for word in process.stdout.readline().split() if word.startswith("http")), process.pid
    finally:
        process.kill()
        process.communicate()


def look_through(name: str, version: Version, record: Path, cases: int) -> dict[str, Any]:
    """Seconds until the first rows of a record that no process has opened yet, then of each order of its rows."""
    with pages_of(version, record) as (address, pid):

        def rows_s(**query: Any) -> float:
            started = time.perf_counter()
            place = f"{address}runs/{record.name}/cases.json?{urlencode({'limit': 100, **query})}"
            with urlopen(place) as response:
                assert json.load(response)["counts"]
            return time.perf_counter() - started

        first_s = rows_s()
        seconds = {what: rows_s(**query) for what, query in ORDERS.items()}
        slowest = max(seconds, key=seconds.__getitem__)
        status = Path(f"/proc/{pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
        row = {"version": name, "cases": cases, "first rows s": first_s, "slowest s": seconds[slowest], "of": slowest}
    return row | {"MB": peak} | {what: round(took, 3) for what, took in seconds.items()}


def main() -> int:
    """A row for each command and number of cases, and two of the pages; 1 when one misses a bar."""
    parser = options(__doc__)
    parser.add_argument("--protocol", default="selene")
    parser.add_argument("--cases", type=int, nargs="*", default=[SAMPLE, LARGE])
    parser.add_argument("--view-cases", type=int, default=MILLION, help="cases of the pages; 0 leaves them out")
    parser.add_argument("--before", default="f3368d10", help="the earlier commit (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="where records and pages stay; a temporary folder without it")
    given = parsed(parser)
    commands, pages = ReportRows(), ReportRows()
    with tempfile.TemporaryDirectory(prefix="moot-bench-") as scratch:
        place: Path = (given.keep or Path(scratch)).absolute()
        before, now = Version(tree_of(given.before, place)), Version(ROOT)
        make_records(place, given.protocol, given.cases, given.view_cases)
        for n in given.cases:
            for row in compare_versions(before, now, [record_at(place, given.protocol, seed, n) for seed in SEEDS], n):
                commands.add(row)
        if given.view_cases:
            viewed = record_at(place, given.protocol, SEEDS[0], given.view_cases)
            pages.add(look_through("before", before, viewed, given.view_cases) | {"ok": None})
            row = look_through("now", now, viewed, given.view_cases)
            held = given.view_cases != MILLION or all(row[figure] <= most for figure, most in VIEW_BARS.items())
            pages.add(row | {"ok": held})
    return finish(given, commands=list(commands), pages=list(pages))


if __name__ == "__main__":
    sys.exit(main())
