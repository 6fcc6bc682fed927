"""Row parsers: JSON Lines, CSV and tab-separated text, streaming, one row in memory at a time.

A JSON list is the exception: it is in memory as a whole.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import PurePath
from typing import NamedTuple

from moot.protocols.errors import TaskFileError
from moot.protocols.tasks.row import Row, shown
from moot.protocols.tasks.source import MAX_LINE, MOST_COLUMNS, Lines, Source


def windows_text(raw: bytes) -> str:
    """Decodes a text or a line: as UTF-8 where valid, else as Windows-1252.

    The five bytes that Windows-1252 leaves open become the control characters of the same number, as browsers read
    them, so that nothing is lost. Raises nothing.

    >>> windows_text(b"I didn\\x92t"), windows_text("“so”".encode()) == "“so”", windows_text(b"\\x9d")
    ('I didn’t', True, '\\x9d')
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", _CONTROLS)


def _as_control(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


_CONTROLS = "moot.controls"
codecs.register_error(_CONTROLS, _as_control)


NOT_UTF8 = "expected UTF-8 text, found other bytes"


def jsonl_rows(source: Source) -> Iterator[Row]:
    """Rows of a JSON Lines source; blank lines are skipped, an unreadable row contains its error.

    Raises:
        TaskFileError: the source as a whole cannot be read.
    """
    with source.open() as stream:
        yield from _jsonl(Lines(stream, source.file), source.file)


def json_list_rows(source: Source) -> Iterator[Row]:
    """Rows of a source that is one JSON list of objects; `line` is an object's index in it, from 1.

    Raises:
        TaskFileError: the source as a whole cannot be read, is longer than `MAX_LINE`, or is no JSON list.
    """
    with source.open() as stream:
        raw = stream.read(MAX_LINE + 1)
    if len(raw) > MAX_LINE:
        raise TaskFileError(source.file, 0, "", f"expected at most {MAX_LINE >> 20} MiB")
    try:
        values = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise TaskFileError(source.file, 0, "", NOT_UTF8) from None
    except (ValueError, RecursionError) as error:
        where = getattr(error, "lineno", 0)
        raise TaskFileError(source.file, where, "", "expected one JSON list of objects") from None
    if not isinstance(values, list):
        raise TaskFileError(source.file, 0, "", f"expected one JSON list of objects, found {shown(values)}")
    for place, value in enumerate(values, start=1):
        yield _object_row(source.file, place, value, "expected one JSON list of objects, found {} in it")


def csv_or_jsonl_rows(source: Source, columns: tuple[str, ...]) -> Iterator[Row]:
    """Rows of a CSV or JSON Lines source: recognised by `.csv` or `.jsonl`, else by its first character.

    Raises:
        TaskFileError: the source as a whole cannot be read, or a CSV header lacks one of `columns`.
    """
    with source.open() as stream:
        lines = Lines(stream, source.file)
        suffix = PurePath(source.file).suffix.lower()
        is_json = suffix in (".jsonl", ".ndjson", ".json") or (
            suffix != ".csv" and lines.peek().lstrip()[:1] in (b"{", b"[")
        )
        yield from _jsonl(lines, source.file) if is_json else _csv(lines, source.file, columns)


class TextTable:
    """Table of a user: a JSON list, JSON Lines, or CSV with commas, semicolons or tabs.

    The format follows from the suffix, else from the first character; the delimiter from the header. Each method raises
    TaskFileError when the source as a whole cannot be read.

    Args:
        source: the file.
    """

    def __init__(self, source: Source) -> None:
        self.file = source.file
        self._source = source

    @cached_property
    def _mark(self) -> str | None:
        """Delimiter of a CSV; empty for JSON Lines, None for a JSON list."""
        suffix = PurePath(self.file).suffix.lower()
        if suffix in (".jsonl", ".ndjson"):
            return ""
        with self._source.open() as stream:
            first = Lines(stream, self.file).peek()
        start = first.lstrip()[:1]
        if suffix not in _MARKED and start in (b"{", b"["):
            return None if start == b"[" else ""
        if suffix == ".json":
            return ""
        if suffix == ".tsv":
            return "\t"
        header = first.decode("utf-8", "replace")
        return max(",;\t", key=lambda mark: _cells(header, mark))

    @property
    def is_plain(self) -> bool:
        """Whether it is JSON Lines or CSV with commas, the formats of all tasks for users' own files."""
        return self._mark in ("", ",")

    def header(self) -> tuple[str, ...] | None:
        """Columns of a CSV, repeated names included; None for JSON, whose rows have their own."""
        if not self._mark:
            return None
        with self._source.open() as stream:
            first = next(_records(Lines(stream, self.file), self._mark), None)
            return tuple(_header(first, self.file)) if first else ()

    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """Names of whole numbers by column: text files have none."""
        return {}

    def rows(self, wanted: Collection[str] | None = None) -> Iterator[Row]:
        """Rows with all their columns."""
        if self._mark is None:
            yield from json_list_rows(self._source)
            return
        with self._source.open() as stream:
            lines = Lines(stream, self.file)
            yield from _csv(lines, self.file, (), self._mark) if self._mark else _jsonl(lines, self.file)


_MARKED = (".csv", ".tsv")


def _cells(header: str, mark: str) -> int:
    try:
        return len(next(csv.reader([header], delimiter=mark), []))
    except csv.Error:
        return 0


def csv_rows(source: Source, columns: tuple[str, ...]) -> Iterator[Row]:
    """Rows of a CSV source.

    Raises:
        TaskFileError: the source as a whole cannot be read, or its header lacks one of `columns`.
    """
    with source.open() as stream:
        yield from _csv(Lines(stream, source.file), source.file, columns)


def text_rows(source: Source, field: str) -> Iterator[Row]:
    """Rows of plain text, one per line, with the line as `field`, without outer space; blank lines are skipped.

    Raises:
        TaskFileError: the source as a whole cannot be read.
    """
    with source.open() as stream:
        lines = Lines(stream, source.file)
        for text in lines:
            if lines.take_bad():
                yield _unread(source.file, lines.number, NOT_UTF8)
            elif text.strip():
                yield Row(source.file, lines.number, {field: text.strip()})


def tab_rows(source: Source, columns: tuple[str, ...], long: str) -> Iterator[Row]:
    """Rows of tab-separated text with a record on every line, in UTF-8 or Windows-1252.

    Surplus tabs of a line belong to its cell `long`, which may be in quotation marks, those inside it
    doubled; where one inside is not, the outer ones are part of the text.

    Raises:
        TaskFileError: the source as a whole cannot be read, or its header lacks one of `columns`.
    """
    with source.open() as stream:
        lines = Lines(stream, source.file, windows_text)
        header: list[str] = []
        for text in lines:
            cells = text.removesuffix("\n").removesuffix("\r").split("\t")
            if not text.strip():
                continue
            if not header:
                header = _header(_Record(lines.number, cells, ""), source.file, columns)
                continue
            surplus, place = len(cells) - len(header), header.index(long)
            if surplus < 0:
                expected = f"expected {len(header)} cells as in the header, found {len(cells)}"
                yield _unread(source.file, lines.number, expected)
                continue
            cells[place : place + surplus + 1] = [_unquoted("\t".join(cells[place : place + surplus + 1]))]
            yield Row(source.file, lines.number, dict(zip(header, cells, strict=True)))


def _unquoted(cell: str) -> str:
    """Cell without its quotation marks; they are kept where one inside is not doubled."""
    inner = cell[1:-1]
    put = len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if put else cell


def _jsonl(lines: Lines, file: str) -> Iterator[Row]:
    for text in lines:
        if lines.take_bad():
            yield _unread(file, lines.number, NOT_UTF8)
            continue
        if not text.strip(" \t\r\n"):
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            yield _unread(file, lines.number, "expected one JSON object per line")
            continue
        yield _object_row(file, lines.number, value, "expected one JSON object per line, found {}")


def _object_row(file: str, line: int, value: object, otherwise: str) -> Row:
    if not isinstance(value, dict):
        return _unread(file, line, otherwise.format(shown(value)))
    if len(value) > MOST_COLUMNS:
        return _unread(file, line, f"expected at most {MOST_COLUMNS:,} keys in an object, found {len(value):,}")
    return Row(file, line, value)


class _Record(NamedTuple):
    """Cells of a CSV record, the line on which it starts, and its error, if any."""

    line: int
    cells: list[str]
    problem: str


def _records(lines: Lines, delimiter: str) -> Iterator[_Record]:
    # the limit is the whole process's, and its default of 128 KiB refuses long passages
    if csv.field_size_limit() < MAX_LINE:
        csv.field_size_limit(MAX_LINE)
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    while True:
        line, cells, problem = lines.number + 1, list[str](), ""
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"expected a CSV record: {error}"
        if bad := lines.take_bad():
            line, problem = bad, NOT_UTF8
        if cells or problem:
            yield _Record(line, cells, problem)


def _csv(lines: Lines, file: str, columns: tuple[str, ...], delimiter: str = ",") -> Iterator[Row]:
    header: list[str] = []
    for record in _records(lines, delimiter):
        line, cells, problem = record
        if not header:
            header = _header(record, file, columns)
        elif problem:
            yield _unread(file, line, problem)
        elif len(cells) != len(header):
            yield _unread(file, line, f"expected {len(header)} cells as in the header, found {len(cells)}")
        else:
            yield Row(file, line, dict(zip(header, cells, strict=True)))


def _header(record: _Record, file: str, columns: tuple[str, ...] = ()) -> list[str]:
    if record.problem:
        raise TaskFileError(file, record.line, "", record.problem)
    if len(record.cells) > MOST_COLUMNS:
        expected = f"expected at most {MOST_COLUMNS:,} columns, found {len(record.cells):,}"
        raise TaskFileError(file, record.line, "", expected)
    header = [cell.strip() for cell in record.cells]
    for column in columns:
        if header.count(column) != 1:
            problem = "is there twice" if column in header else "is missing"
            raise TaskFileError(file, record.line, column, f"{problem}; expected the columns {', '.join(columns)}")
    return header


def _unread(file: str, line: int, problem: str) -> Row:
    return Row(file, line, {}, TaskFileError(file, line, "", problem))
