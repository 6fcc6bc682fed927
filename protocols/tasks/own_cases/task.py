"""Task `cases:FILE`: a user's own questions, from any file or folder with recognisable columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from moot.protocols.case import Case, Reference, Scoring
from moot.protocols.errors import TaskFileError
from moot.protocols.regular_files import open_regular
from moot.protocols.tasks.formats import TextTable
from moot.protocols.tasks.own_cases.arrow_tables import ArrowTable
from moot.protocols.tasks.own_cases.choices import YES_NO, Choices, read_choices, value_of
from moot.protocols.tasks.own_cases.columns import SPLIT, ColumnFinder, Columns, check_map, hint, listed
from moot.protocols.tasks.own_cases.folders import data_files
from moot.protocols.tasks.own_cases.gold import GoldSurvey, closed_gold, free_gold, is_yes_no
from moot.protocols.tasks.picture_files import pictures_beside
from moot.protocols.tasks.row import ParsedCase, Row, is_blank, shown
from moot.protocols.tasks.source import Source, locate
from moot.protocols.tasks.task import MOST_SHOWN, Task, first_few
from moot.protocols.tasks.unmapped import unmapped_remark, unmapped_text

Kind = Literal["number", "yes or no", "text"]
_FEW = 0.25
"""Largest share of rows that still counts as exceptions."""

_NO_ANSWER = frozenset({"na", "nil", "-", "--", "?", "unknown", "tbd", "missing"})
"""Common texts for a missing answer that may also be answers, in lower case; `is_absent` does not recognise them."""

_SAID: dict[Kind, tuple[str, str]] = {
    "number": ("are no numbers, unlike the others", "they are compared as texts"),
    "yes or no": ("are neither yes nor no, unlike the others", "all answers of the file are compared as texts then"),
    "text": ("look like none", "they count as right answers"),
}
"""Description and treatment of exceptional answers, by the kind of nearly all answers."""


@dataclass
class _Rows:
    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, answer: str) -> None:
        self.count += 1
        if len(self.first) < MOST_SHOWN:
            self.first.append((line, answer))


class GoldKindCounter:
    """Counts the kinds of a file's gold answers, row by row."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, _Rows] = {kind: _Rows() for kind in _SAID}
        self._no_answer = _Rows()

    def add(self, line: int, kind: Kind, answer: str) -> None:
        """Processes the first right answer of a row."""
        self._kinds[kind].add(line, answer)
        if answer.strip().casefold() in _NO_ANSWER:
            self._no_answer.add(line, answer)

    def remark(self) -> str:
        """One line about the exceptions; empty when there are none."""
        usual = max(self._kinds, key=lambda kind: self._kinds[kind].count)
        others = [rows for kind, rows in self._kinds.items() if kind != usual]
        odd = [self._no_answer] if usual == "text" else others
        count, total = sum(rows.count for rows in odd), sum(rows.count for rows in self._kinds.values())
        numbers = self._kinds["number"]
        if 0 < numbers.count < total and not 0 < count <= _FEW * total:
            texts = [rows for kind, rows in self._kinds.items() if kind != "number"]
            numeric = f"{numbers.count:,} of {total:,} gold answers are numbers, compared by value"
            return f"{numeric}; the others are compared as texts (row {_first_rows(texts)})"
        if not 0 < count <= _FEW * total:
            return ""
        named = _first_rows(odd)
        what, effect = _SAID[usual]
        return f"{count:,} of {total:,} gold answers {what} (row {named}): {effect}; a blank cell is not scored"


def _first_rows(kinds: Iterable[_Rows]) -> str:
    rows = list(kinds)
    first = sorted(each for of_kind in rows for each in of_kind.first)
    return first_few([f"{line:,} {shown(answer)}" for line, answer in first], sum(each.count for each in rows))


NAME = "cases"
_MOST_COLUMNS = 1000
_ARROW = (".parquet", ".arrow", ".feather")


Table = TextTable | ArrowTable
"""Rows with named columns, from any file format."""


def open_table(path: str, split: str | None = None) -> Table:
    """Table of a file or folder.

    Raises:
        TaskFileError: there is none, it can be read only once, or the folder is ambiguous.
    """
    try:
        if path != "-" and Path(path).expanduser().is_dir():
            return _table_of(path, data_files(path, split))
    except (OSError, ValueError, RuntimeError):
        pass  # `locate` reports what is wrong with the name
    source = locate(path)
    if split is not None:
        raise TaskFileError(path, 0, SPLIT, "expected a folder with several, found a file")
    if not source.replayable:
        expected = "expected a file: how its answers are written is known after the last row, so it is read twice"
        raise TaskFileError(path, 0, "", expected)
    with source.open() as stream:
        magic = stream.read(6)
    if magic[:4] == b"PK\x03\x04" or magic[:2] == b"\x1f\x8b":
        raise TaskFileError(
            path, 0, "", "expected a table, found an archive or a spreadsheet: unpack it, or save it as CSV"
        )
    if magic[:4] == b"PAR1" or magic == b"ARROW1" or Path(path).suffix.lower() in _ARROW:
        return ArrowTable(path, [(path, Path(path).expanduser().absolute())])
    return TextTable(source)


def _table_of(path: str, files: list[tuple[str, Path]]) -> Table:
    first = files[0][1]
    if first.suffix.lower() in _ARROW:
        return ArrowTable(path, files)
    return TextTable(Source(str(first), partial(open_regular, first)))


def own_cases_task(path: str, spec: str, **columns: str) -> Task:
    """Task over a user's own questions; `open_task("cases:FILE")` is the usual way to it.

    Args:
        path: of the file or folder.
        spec: as the user wrote it.
        columns: the user's column map; see `ColumnFinder`.

    Raises:
        ConfigError: the map excludes the question.
        TaskFileError: see `open_table`.
    """
    check_map(NAME, columns)
    cases = _OwnCases(open_table(path, columns.get(SPLIT)), ColumnFinder(path, columns))
    return Task(
        spec=spec,
        name=NAME,
        path=path,
        labels=None,
        replayable=True,
        read=cases.rows,
        parse=cases.parse,
        pictures=cases.pictures,
        remarks=cases.remarks,
        columns=cases.columns,
    )


class _OwnCases:
    """Rows of one table. The format of its gold answers is determined once, before the first case."""

    def __init__(self, table: Table, finder: ColumnFinder) -> None:
        self._table, self._finder = table, finder
        self._survey: GoldSurvey | None = None
        self._odd_gold = GoldKindCounter()
        self._without_gold = self._unmapped = ""
        self._columns: dict[str, str] = {}
        self._names: Mapping[str, tuple[str, ...]] = {}

    def rows(self) -> Iterator[Row]:
        """Rows, except those of blank cells only.

        Raises:
            TaskFileError: the table cannot be read, or its columns or answers are not recognised.
        """
        if self._survey is None:
            self._look_through()
        yield from self._read()

    def parse(self, row: Row) -> Iterator[ParsedCase]:
        """Builds a case, its texts unchanged, with the first right answer, None where the row has none, and how an
        answer is compared with the right ones.

        Raises:
            TaskFileError: a field is missing or malformed, or the answer is none of the labels.
        """
        columns, choices = self._choices(row)
        of = columns.of
        gold, scoring = self._gold(row, columns, choices)
        case = Case(
            id=row.identity(of["id"]) if "id" in of else "",
            question=row.checked(of["question"], value_of(row, of["question"])),
            labels=None if choices is None else choices.labels,
            choices=() if choices is None else choices.texts,
            passage=_text(row, of.get("passage")),
            title=_text(row, of.get("title")),
            documents=_documents(row, of.get("documents")),
        )
        reference = Reference(
            scoring=scoring,
            accepted=gold if len(gold) > 1 or scoring == "short answer" else (),
            group=_name(row, of.get("group")),
        )
        yield ParsedCase(case, next(iter(gold), None), reference)

    def pictures(self, row: Row) -> tuple[Path | bytes, ...]:
        """The pictures of a row: files beside its own, or embedded bytes, as in `datasets`.

        Raises:
            TaskFileError: one is no picture's name, is missing or outside of the folder.
        """
        column = self._finder.of_row(row).of.get("images")
        value = value_of(row, column)
        if column is None or is_blank(value):
            return ()
        if isinstance(value, str):
            value = [piece.strip() for piece in value.split(";") if piece.strip()]
        found: list[Path | bytes] = []
        for each in value if isinstance(value, (list, tuple)) else (value,):
            picture = each.get("bytes") if isinstance(each, Mapping) else each
            name = each.get("path") if isinstance(each, Mapping) else each
            if isinstance(picture, bytes):
                found.append(picture)
            elif isinstance(name, str) and name:
                found += pictures_beside(row, column, (name,))
            else:
                raise row.error(column, f"expected names of pictures or their bytes, found {shown(each)}")
        return tuple(found)

    def remarks(self) -> tuple[str, ...]:
        """Warnings about the file: text that no field takes, no column of gold answers, a few answers of another kind,
        or some read leniently."""
        return (
            self._unmapped,
            self._without_gold,
            self._odd_gold.remark(),
            *(() if self._survey is None else self._survey.remarks()),
        )

    def columns(self) -> dict[str, str]:
        """Column by field, as found in the rows; empty before the table was read."""
        return self._columns

    def _look_through(self) -> None:
        header = self._table.header()
        if header:
            self._columns = self._finder.of_header(header).by_field
            self._check_seen(header)
        self._names = self._table.class_names()
        survey, seen, gold = GoldSurvey(), dict[str, None](), False
        for row in self._read("passage", "title", "images", "documents"):
            if row.problem is not None:
                raise row.problem
            if header is None and len(seen) < _MOST_COLUMNS:
                seen.update(dict.fromkeys(row.values))
            columns, choices = self._choices(row, surveyed=False)
            if header is None:
                self._columns = {**columns.by_field, **self._columns}
            gold = gold or "gold" in columns.of
            survey.add(row, columns.of.get("gold"), choices)
            if choices is None:
                self._look_at(row, columns.of.get("gold"))
        if header is None and seen:
            self._check_seen(tuple(seen))
        survey.check()
        if not gold and self._finder.looks_for("gold"):
            file = self._table.file
            self._without_gold = (
                f"no gold column: verdicts will not be scored; name one with cases:{file}:gold=COLUMN; "
                f"columns: {listed(header or tuple(seen))}"
            )
        unmapped = self._unmapped_text(header)
        mapped = f"cases:{self._table.file}:passage=COLUMN"
        # no column as the example: the one that is left over is often the right answer or its explanation
        remedy = f"if models may see one, map it to a field, as in {mapped}, else remove it"
        self._unmapped = unmapped_remark(unmapped, remedy)
        self._survey = survey

    def _unmapped_text(self, header: tuple[str, ...] | None) -> tuple[str, ...]:
        """Columns with text that no field takes."""
        of_all = self._wanted() if header else None
        left = [name for name in header or () if of_all is not None and name not in of_all]
        if header and not left:
            return ()

        def used_in(row: Row) -> set[str]:
            used = of_all if of_all is not None else self._finder.of_row(row).used
            excluded = filter(self._finder.excludes, row.values)
            return {*used, *(name.split(".")[0] for name in used), *excluded}

        return unmapped_text(self._table.rows(left or None), used_in)

    def _look_at(self, row: Row, column: str | None) -> None:
        answers, scoring = free_gold(row, column)
        if answers:
            kind: Kind = "number" if scoring == "number" else "yes or no" if is_yes_no(answers[0]) else "text"
            self._odd_gold.add(row.line, kind, answers[0])

    def _check_seen(self, seen: tuple[str, ...]) -> None:
        missing = self._finder.never_seen(seen)
        if missing is not None:
            raise TaskFileError(self._table.file, 0, missing, f"there is no such column: {hint(missing, seen)}")

    def _wanted(self, *left_out: str) -> Collection[str] | None:
        """Columns of all fields but excluded ones; None where only the rows have them."""
        header = self._table.header()
        if not header:
            return None
        columns = self._finder.of_header(header)
        used = (*(column for name, column in columns.of.items() if name not in left_out), *columns.choices)
        return {part for column in used for part in (column, column.split(".")[0])}

    def _read(self, *left_out: str) -> Iterator[Row]:
        for row in self._table.rows(self._wanted(*left_out)):
            if row.problem is not None or not _is_empty(row):
                yield self._with_class_name(row) if row.problem is None and self._names else row

    def _with_class_name(self, row: Row) -> Row:
        """The row with its gold answer's number replaced by the name."""
        column = self._finder.of_row(row).of.get("gold", "")
        names, number = self._names.get(column), row.values.get(column)
        if names is None or not isinstance(number, int):
            return row
        if not -1 <= number < len(names):
            problem = row.error(column, f"expected -1 to {len(names) - 1}, found {shown(number)}")
            return Row(row.file, row.line, {}, problem)
        return Row(row.file, row.line, {**row.values, column: None if number < 0 else names[number]})

    def _choices(self, row: Row, surveyed: bool = True) -> tuple[Columns, Choices | None]:
        columns = self._finder.of_row(row)
        names: tuple[str, ...] = self._names.get(columns.of.get("gold", ""), ())
        if surveyed and not names and self._survey is not None and self._survey.yes_no:
            names = YES_NO
        return columns, read_choices(row, columns, names)

    def _gold(self, row: Row, columns: Columns, choices: Choices | None) -> tuple[tuple[str, ...], Scoring]:
        column = columns.of.get("gold")
        if choices is None:
            return free_gold(row, column)
        assert self._survey is not None
        return closed_gold(row, column, choices, self._survey.by_place), "label"


def _is_empty(row: Row) -> bool:
    """Whether a row of a CSV has blank cells only."""
    return bool(row.values) and all(isinstance(value, str) and not value.strip() for value in row.values.values())


def _text(row: Row, column: str | None) -> str:
    """Text of an optional column."""
    value = value_of(row, column)
    return "" if column is None or value is None else row.checked(column, value, may_be_empty=True)


def _name(row: Row, column: str | None) -> str:
    """Name of a group: text, or a whole number as text; empty without one."""
    value = value_of(row, column)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(row, column).strip()


def _documents(row: Row, column: str | None) -> tuple[str, ...]:
    value = value_of(row, column)
    if column is None or is_blank(value):
        return ()
    if not isinstance(value, (list, tuple)):
        raise row.error(column, f"expected a list of texts, found {shown(value)}")
    return tuple(row.checked(column, text) for text in value)
