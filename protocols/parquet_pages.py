"""Pages of a Parquet file: their real sizes, before anything is decompressed.

The footer's totals may be wrong, and a decoder allocates what the header of a page says. So the headers are read: they
are small structures of Thrift's compact protocol.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_BYTE_ARRAY, _REPEATED = 6, 2
_DELTA_BYTE_ARRAY = 7
_MOST_LEVELS, _MOST_SHIFT = 32, 63
_HEADER_BYTES, _MOST_HEADER_BYTES = 512, 2**20
_MOST_FOOTER_BYTES = 2**24
_MOST_PAGES = 2_000_000
_TAIL = struct.Struct("<I4s")

Fields = dict[tuple[int, int], Any]
"""Fields of a structure by number and type: a decoder skips a field of another type."""


class Column(NamedTuple):
    """Column of a Parquet file, or a member of one.

    Attributes:
        path: names of the column at the top and its members, joined by dots.
        top: name of the column at the top.
        is_text: whether its values are byte strings, of any length.
        is_nested: whether a row may have several values.
    """

    path: str
    top: str
    is_text: bool
    is_nested: bool


class ColumnPages(NamedTuple):
    """Pages of a column in one row group.

    Attributes:
        column: the column.
        values: number of values, nulls and items of lists included.
        bytes: of all pages together, decompressed.
        largest_bytes: of the largest page and the largest dictionary together, decompressed. No value is larger.
        has_prefixes: whether values are written as differences, and may together be far larger than their page.
    """

    column: Column
    values: int
    bytes: int
    largest_bytes: int
    has_prefixes: bool


class _Page(NamedTuple):
    kind: int
    bytes: int
    values: int
    encoding: int


class ParquetLayout:
    """Columns, row groups and pages of a Parquet file, from its footer and the headers of its pages, each read once.

    Args:
        file: the file.

    Attributes:
        columns: of the file.

    Raises:
        ValueError: the file is damaged, or no Parquet file.
        OSError: it cannot be read.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._left_pages = _MOST_PAGES
        self._read: dict[tuple[int, Column], ColumnPages] = {}
        with _checked():
            footer = _footer(file.fileno())
            self.columns = _columns(footer[2, _LIST])
            self._groups: list[list[Fields]] = [group[1, _LIST] for group in footer.get((4, _LIST), ())]

    def pages(
        self, file: BinaryIO, tops: Collection[str] | None = None, groups: Iterable[int] | None = None
    ) -> list[ColumnPages]:
        """Pages of columns, by row group.

        Args:
            file: the same file.
            tops: names of columns at the top; all when None.
            groups: row groups; all when None.

        Raises:
            ValueError: a header is damaged, or the file has too many pages.
            OSError: the file cannot be read.
        """
        with _checked():
            return [
                self._of_column(file.fileno(), group, column, chunk[3, _STRUCT])
                for group in (range(len(self._groups)) if groups is None else groups)
                for column, chunk in zip(self.columns, self._groups[group], strict=True)
                if tops is None or column.top in tops
            ]

    def _of_column(self, descriptor: int, group: int, column: Column, about: Fields) -> ColumnPages:
        if (group, column) in self._read:
            return self._read[group, column]
        pages = list(islice(_headers(descriptor, about), self._left_pages + 1))
        self._left_pages -= len(pages)
        if self._left_pages < 0:
            raise ValueError(f"it has more than {_MOST_PAGES:,} pages")
        dictionary = max((page.bytes for page in pages if page.kind == _DICTIONARY), default=0)
        found = self._read[group, column] = ColumnPages(
            column=column,
            values=sum(page.values for page in pages),
            bytes=sum(page.bytes for page in pages),
            largest_bytes=dictionary + max((page.bytes for page in pages if page.kind != _DICTIONARY), default=0),
            has_prefixes=any(page.encoding == _DELTA_BYTE_ARRAY for page in pages),
        )
        return found


def _footer(descriptor: int) -> Fields:
    size = os.fstat(descriptor).st_size
    length, magic = _TAIL.unpack(os.pread(descriptor, _TAIL.size, max(0, size - _TAIL.size)))
    if magic != b"PAR1" or length + _TAIL.size > size:
        raise ValueError("it has no footer")
    if length > _MOST_FOOTER_BYTES:
        raise ValueError(f"its footer is larger than {_MOST_FOOTER_BYTES >> 20} MiB")
    return _structure(os.pread(descriptor, length, size - _TAIL.size - length), 0)[0]


@contextmanager
def _checked() -> Iterator[None]:
    """Converts errors on unexpected bytes."""
    try:
        yield
    except (LookupError, TypeError, struct.error, UnicodeDecodeError, StopIteration, RecursionError):
        raise ValueError("its footer or the header of a page is damaged") from None


def _columns(schema: list[Fields]) -> list[Column]:
    """Columns that have pages, in order."""
    elements = iter(schema)

    def members(names: tuple[str, ...], is_nested: bool, count: int) -> Iterator[Column]:
        for _ in range(count):
            element = next(elements, {})
            path = (*names, element[4, _BINARY].decode())
            nested = is_nested or element.get((3, _I32)) == _REPEATED
            if inner := element.get((5, _I32), 0):
                yield from members(path, nested, inner)
            else:
                yield Column(".".join(path), path[0], element.get((1, _I32)) == _BYTE_ARRAY, nested)

    return list(members((), False, next(elements, {})[5, _I32]))


def _headers(descriptor: int, about: Fields) -> Iterator[_Page]:
    """Pages of a column, as a decoder walks over them."""
    at: int = about[9, _I64]
    dictionary = about.get((11, _I64), 0)
    at = dictionary if 0 < dictionary < at else at
    end, seen = at + about[7, _I64], 0
    while seen < about[5, _I64] and at < end:
        header, length = _header(descriptor, at)
        kind, size, packed = header[1, _I32], header[2, _I32], header[3, _I32]
        of_kind = header.get({_DATA: (5, _STRUCT), _DATA_V2: (8, _STRUCT)}.get(kind, (0, 0)), {})
        values = of_kind.get((1, _I32), 0)
        if min(size, packed, values) < 0:
            raise ValueError("the header of a page is damaged")
        yield _Page(kind, size, values, of_kind.get((2 if kind == _DATA else 4, _I32), 0))
        seen += values
        at += length + packed


def _header(descriptor: int, at: int) -> tuple[Fields, int]:
    """Header of the page at a byte, and its length."""
    wanted = _HEADER_BYTES
    while True:
        raw = os.pread(descriptor, wanted, at)
        try:
            return _structure(raw, 0)
        except IndexError:
            if len(raw) < wanted or wanted >= _MOST_HEADER_BYTES:
                raise
            wanted *= 8


def _structure(raw: bytes, at: int, level: int = 0) -> tuple[Fields, int]:
    """Structure at a byte, and the byte behind it.

    Raises:
        IndexError: it is longer than `raw`.
    """
    if level > _MOST_LEVELS:
        raise ValueError("it is nested too deeply")
    fields: Fields = {}
    number = 0
    while kind := raw[at] & 15:
        step = raw[at] >> 4
        at += 1
        if step:
            number += step
        else:
            number, at = _number(raw, at)
        fields[number, kind], at = _value(raw, at, kind, level)
    return fields, at + 1


def _value(raw: bytes, at: int, kind: int, level: int) -> tuple[Any, int]:
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind in (_I16, _I32, _I64):
        return _number(raw, at)
    if kind == _BINARY:
        length, at = _natural(raw, at)
        if at + length > len(raw):
            raise IndexError
        return raw[at : at + length], at + length
    if kind == _STRUCT:
        return _structure(raw, at, level + 1)
    if kind in (_LIST, _SET):
        return _list(raw, at, level + 1)
    if kind in (_BYTE, _DOUBLE):
        return None, at + (1 if kind == _BYTE else 8)
    raise ValueError("a structure of it has an unknown type")  # Parquet has no maps


def _list(raw: bytes, at: int, level: int) -> tuple[list[Any], int]:
    count, kind = raw[at] >> 4, raw[at] & 15
    at += 1
    if count == 15:
        count, at = _natural(raw, at)
    found = []
    for _ in range(count):
        value, at = (None, at + 1) if kind in (_TRUE, _FALSE) else _value(raw, at, kind, level)
        raw[at - 1]  # a list of nothing ends with the bytes
        found.append(value)
    return found, at


def _natural(raw: bytes, at: int) -> tuple[int, int]:
    """Variable-length natural number."""
    found = shift = 0
    while raw[at] & 128:
        if shift >= _MOST_SHIFT:
            raise ValueError("a number of it is too long")
        found |= (raw[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return found | raw[at] << shift, at + 1


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """Variable-length whole number."""
    found, at = _natural(raw, at)
    return found >> 1 ^ -(found & 1), at
