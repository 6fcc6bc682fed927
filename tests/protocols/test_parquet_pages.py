"""Pages of Parquet files: their real sizes, whatever the footer says."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moot.protocols.parquet_pages import ColumnPages, ParquetLayout

ROWS = pa.table(
    {
        "text": [f"text {n % 7}" for n in range(1000)],
        "number": range(1000),
        "of": [{"inner": {"x": n}, "texts": ["a"] * (n % 3)} for n in range(1000)],
        "lists": [[["a", str(n)], []] for n in range(1000)],
    }
)


def pages(file: Path, *tops: str) -> list[ColumnPages]:
    with file.open("rb") as stream:
        return ParquetLayout(stream).pages(stream, tops or None)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "data_page_size": 256, "row_group_size": 300},
        {"write_statistics": False, "write_page_checksum": True, "compression": "none"},
    ],
)
def test_values_and_columns_are_those_of_the_footer(tmp_path: Path, options: dict[str, Any]) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(ROWS, file, **options)
    told = pq.ParquetFile(file).metadata
    chunks = [told.row_group(g).column(c) for g in range(told.num_row_groups) for c in range(told.num_columns)]
    found = pages(file)
    assert [each.column.path for each in found] == [chunk.path_in_schema for chunk in chunks]
    assert [each.values for each in found] == [chunk.num_values for chunk in chunks]
    assert all(0 < each.bytes <= chunk.total_uncompressed_size for each, chunk in zip(found, chunks, strict=True))
    nested = {each.column.top for each in found if each.column.is_nested}
    assert nested == {"of", "lists"}
    assert {each.column.path for each in found if each.column.is_text} == {
        "text",
        "of.texts.list.element",
        "lists.list.element.list.element",
    }
    assert [each.column.top for each in pages(file, "number")] == ["number"] * told.num_row_groups


def test_a_footer_that_lies_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a" * 2**22]}), file, compression="zstd", use_dictionary=False)
    size = pq.ParquetFile(file).metadata.row_group(0).column(0).total_uncompressed_size
    written = _varint(2 * size)
    lie = bytes([2 | 128, *[128] * (len(written) - 2), 0])
    file.write_bytes(file.read_bytes().replace(written, lie))
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).total_uncompressed_size == 1
    (found,) = pages(file)
    assert found.largest_bytes > 2**22


def _varint(number: int) -> bytes:
    return bytes([number & 127 | 128, *_varint(number >> 7)]) if number > 127 else bytes([number])


def test_prefixes_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    encoding = {"text": "DELTA_BYTE_ARRAY"}
    pq.write_table(ROWS.select(["text"]), file, use_dictionary=False, column_encoding=encoding)
    assert [each.has_prefixes for each in pages(file)] == [True]


def test_any_bytes_are_read_or_refused(tmp_path: Path) -> None:
    file, draw = tmp_path / "a.parquet", random.Random(1)
    pq.write_table(ROWS.slice(0, 20), file)
    whole = file.read_bytes()
    for _ in range(300):
        broken = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            broken[draw.randrange(len(broken) // 2, len(broken))] = draw.randrange(256)
        file.write_bytes(broken[: draw.choice((None, None, draw.randrange(len(broken))))])
        with suppress(ValueError):
            pages(file)
