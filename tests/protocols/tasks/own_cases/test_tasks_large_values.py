"""`cases:` over small files whose rows are far larger: repeated categories, views, empty lists, compressed zeros."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from task_files import cases, refused

from moot.protocols.tasks.own_cases import arrow_tables
from moot.protocols.tasks.source import MOST_COLUMNS

MIB = 2**20
LONG = "a" * (MIB // 4)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def arrow(table: Any, compression: str | None = None) -> str:
    with pa.ipc.new_file("a.arrow", table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return "a.arrow"


def parquet(table: Any, **options: Any) -> str:
    pq.write_table(table, "a.parquet", compression="zstd", **options)
    return "a.parquet"


def repeated(rows: int, text: str = LONG) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def views(rows: int) -> Any:
    one = np.zeros(rows, [("length", "<i4"), ("prefix", "S4"), ("place", "<i8")])
    one["length"], one["prefix"] = len(LONG), LONG[:4].encode()
    return pa.Array.from_buffers(
        pa.string_view(), rows, [None, pa.py_buffer(one.tobytes()), pa.py_buffer(LONG.encode())]
    )


def one_list(items: Any) -> Any:
    return pa.table({"question": ["q"], "choices": pa.ListArray.from_arrays(pa.array([0, len(items)], "int32"), items)})


def asked(column: Any) -> Any:
    return pa.table({"question": column})


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda: parquet(one_list(pa.array([LONG] * 400))), "at most 64 MiB in a row"),
        (lambda: parquet(one_list(pa.array(np.zeros(2**21 + 1, bool)))), "at most 64 MiB in a row"),
        (lambda: arrow(one_list(repeated(400))), "at most 64 MiB in a row"),
        (lambda: arrow(one_list(views(400))), "at most 64 MiB in a row"),
        (lambda: arrow(one_list(pa.nulls(2**30))), "at most 64 MiB in a row"),
        (lambda: arrow(one_list(pa.array([{}] * 2**21))), "at most 64 MiB in a row"),
    ],
)
def test_a_row_is_bounded_by_what_it_is_in_memory(write: Callable[[], str], expected: str) -> None:
    assert expected in refused(f"cases:{write()}")


def test_all_rows_are_bounded_by_the_size_of_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_tables, "_MOST_BYTES", 8 * MIB)
    monkeypatch.setattr(arrow_tables, "_MOST_TIMES", 2)
    assert "in all rows" in refused(f"cases:{parquet(asked(repeated(100)))}")
    assert "in all rows" in refused(f"cases:{arrow(asked(repeated(100)))}")
    assert "at most" in refused(f"cases:{arrow(asked(views(100)))}")


def test_what_is_decompressed_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_tables, "_LARGEST_PAGES", 8 * MIB)
    zeros = asked(pa.array([LONG] * 40))
    assert "pages of at most 8 MiB" in refused(f"cases:{parquet(zeros, use_dictionary=False)}")
    for compression in ("zstd", "lz4"):
        assert "at most 8 MiB in a batch" in refused(f"cases:{arrow(zeros, compression)}")
    monkeypatch.setattr(arrow_tables, "_MOST_NESTED", 1000)
    assert "at most 1,000 items" in refused(f"cases:{parquet(one_list(pa.array([False] * 2000)))}")
    encoded = parquet(one_list(pa.array(["x"])), use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")
    assert "delta-encoded" in refused(f"cases:{encoded}")


def test_repeated_texts_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    questions, passages = [f"q{n}" for n in range(300)], ["a passage " * 300, "another " * 300]
    table = pa.table({"question": questions, "passage": pa.array(passages * 150), "choices": [["x", "y"]] * 300})
    monkeypatch.setattr(arrow_tables, "_BATCH_BYTES", 1)
    for file in (parquet(table), arrow(table), arrow(table, "zstd")):
        read = cases(f"cases:{file}")
        assert [each.case.question for each in read] == questions
        assert [each.case.passage for each in read] == passages * 150
        assert {each.case.choices for each in read} == {("x", "y")}


def test_columns_and_keys_are_bounded() -> None:
    names = ["question", *(f"c{n}" for n in range(MOST_COLUMNS))]
    Path("a.csv").write_text(f"{','.join(names)}\n{','.join('x' for _ in names)}\n")
    Path("a.jsonl").write_text(json.dumps(dict.fromkeys(names, "x")))
    Path("a.json").write_text(f"[{Path('a.jsonl').read_text()}]")
    files = ["a.csv", "a.jsonl", "a.json", parquet(pa.table({name: ["x"] for name in names}))]
    for file in files:
        assert "expected at most 10,000" in refused(f"cases:{file}")


def test_pipes_in_a_folder_are_refused() -> None:
    for name in ("train.csv", "test.parquet", "state.json", "HallusionBench.json", "dataset.csv"):
        os.mkdir(folder := f"of-{name}")
        os.mkfifo(f"{folder}/{name}")
        for task in ("cases", "hallusionbench", "symptoms"):
            assert refused(f"{task}:{folder}")
    assert "a pipe" in refused("cases:of-train.csv")
    assert "a device" in refused("claims:/dev/zero")
