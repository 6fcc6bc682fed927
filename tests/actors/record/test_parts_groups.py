"""Row groups of parts that hold some cases."""

from __future__ import annotations

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
