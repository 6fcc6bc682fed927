"""Row groups of parts: which hold some cases, and how they are read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from moot.actors.record.parts import groups_with


def test_only_groups_with_rows_of_the_cases_are_named(tmp_path: Path) -> None:
    file = tmp_path / "part.parquet"
    pq.write_table(pa.table({"case_id": ["a", "b", "c", "a", "d"]}), file, row_group_size=2, write_page_checksum=True)
    assert groups_with(["a"])(file) == [0, 1]
    assert groups_with(["d", "b"])(file) == [0, 2]
    assert groups_with(["e"])(file) == []


_READS = """
import os, sys
from pathlib import Path
from moot.actors.record.parts import PartReader
before = set(os.listdir("/proc/self/task"))
with open(sys.argv[1], "rb") as file:
    PartReader(file).read()
print(len(set(os.listdir("/proc/self/task")) - before))
"""


def test_reading_starts_no_thread_that_could_outlive_the_interpreter(tmp_path: Path) -> None:
    file = tmp_path / "part.parquet"
    columns = {f"column_{number}": ["text"] * 100 for number in range(20)}
    pq.write_table(pa.table(columns), file, write_page_checksum=True)
    done = subprocess.run([sys.executable, "-c", _READS, file], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "0"
