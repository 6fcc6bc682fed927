"""Column map of a user's file: by usual names of columns, or as the user states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from moot.protocols.errors import ConfigError, TaskFileError, nearest
from moot.protocols.tasks.row import Row, shown

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "question": ("question", "prompt", "query", "problem", "input"),
        "choices": ("choices", "options", "endings"),
        "labels": ("labels",),
        "gold": (
            "gold",
            "answer",
            "answers",
            "answer_key",
            "answerkey",
            "label",
            "target",
            "correct_answer",
            "correct",
            "correct_answer_num",
        ),
        "passage": ("passage", "context", "article", "flores_passage"),
        "title": ("title",),
        "images": ("images", "image"),
        "documents": ("documents",),
        "group": ("group",),
        "id": ("id",),
    }
)
"""Usual names of columns by field of a case; the field's own name takes precedence."""

SPLIT = "split"
"""Key of a column map for the part of a folder to read."""

SHOWN = 8
"""Most columns in an error."""

_FAMILY = re.compile(r"(?:((?:mc_)?(?:choice|option|answer|ending|opt))_?)?([a-z]|\d{1,2})")


@dataclass(frozen=True)
class Columns:
    """Columns of the fields in a file's rows.

    Attributes:
        of: column by field; fields that the file lacks are omitted.
        choices: columns of the choices, in order: one with all of them, or one for each.
        places: for a column per choice with names that end in numbers, the choice's index by that number.
        labels: the labels of every case, where the user gave them.
    """

    of: Mapping[str, str]
    choices: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    labels: tuple[str, ...] = ()

    @property
    def by_field(self) -> dict[str, str]:
        """Column by field, several with `+` between them."""
        return {**self.of, **({"choices": "+".join(self.choices)} if self.choices else {})}

    @property
    def used(self) -> tuple[str, ...]:
        """All columns in use."""
        return (*self.of.values(), *self.choices)


class ColumnFinder:
    """Finder of the columns of the fields in a file.

    Args:
        file: its name, for errors.
        mapped: the user's column map: a field's column, several with `+` between them for the choices, fixed labels
            with `/` between them, or nothing for a field that is not to be read.
    """

    def __init__(self, file: str, mapped: Mapping[str, str]) -> None:
        self._file = file
        self._mapped = {name: column for name, column in mapped.items() if name != SPLIT}
        self._found: dict[tuple[str, ...], Columns] = {}

    def of_row(self, row: Row) -> Columns:
        """Columns of a row, cached for rows with the same keys.

        Raises:
            TaskFileError: see `of_header`; names the row.
        """
        keys = tuple(row.values)
        known = self._found.get(keys)
        if known is None:
            if len(self._found) >= 1000:
                self._found.clear()
            known = self._found[keys] = self.of_header(keys, row.line)
        return known

    def of_header(self, header: Sequence[str], line: int = 0) -> Columns:
        """Columns among a header's names.

        Raises:
            TaskFileError: no column has the question, several could have the same field, or one occurs twice.
        """
        of: dict[str, str] = {}
        for name in FIELDS:
            column = self._column(name, header, line)
            if column is not None:
                of[name] = column
        if "question" not in of:
            raise self._no_question(line, header)
        choices, places = self._choices(of.pop("choices", None), header)
        if (
            choices
            and "gold" not in of
            and not {"gold", "choices"} & set(self._mapped)
            and _plain(choices[0]).startswith("answer")
        ):
            named = f"cases:{self._file}:choices={'+'.join(choices)}"
            expected = f"may be a choice or a right answer, and no column tells the right choice: say so, as in {named}"
            raise TaskFileError(self._file, line, choices[0], expected)
        labels = tuple(each.strip() for each in self._mapped.get("labels", "").split("/")) if self._fixed else ()
        found = Columns(of, choices, places, labels)
        for column in found.used:
            if header.count(column) > 1:
                raise TaskFileError(self._file, line or 1, column, "is there twice: leave one of them")
        return found

    def looks_for(self, name: str) -> bool:
        """Whether a field is read if the file has it: the user's map may exclude it."""
        return self._mapped.get(name) != ""

    def excludes(self, column: str) -> bool:
        """Whether the user's map excludes the field that would take a column of this name."""
        names = {known for name, mapped in self._mapped.items() if mapped == "" for known in FIELDS[name]}
        return _plain(column) in names

    def never_seen(self, seen: Iterable[str]) -> str | None:
        """A column of the user's map that the file lacks; None if it has all."""
        known = set(seen)
        wanted = (part for name, column in self._mapped.items() for part in self._parts(name, column))
        return next((column for column in wanted if column.split(".")[0] not in known and column not in known), None)

    def _no_question(self, line: int, header: Sequence[str]) -> TaskFileError:
        if column := self._mapped.get("question"):
            return TaskFileError(self._file, line, column, f"there is no such column: {hint(column, header)}")
        expected = f"expected one of the columns {', '.join(FIELDS['question'])}, found {listed(header)}"
        return TaskFileError(
            self._file, line, "question", f"{expected}; say which one it is, as in cases:{self._file}:question=COLUMN"
        )

    @property
    def _fixed(self) -> bool:
        """Whether the user's map states the labels."""
        return "/" in self._mapped.get("labels", "")

    def _parts(self, name: str, column: str) -> list[str]:
        if not column or (name == "labels" and self._fixed):
            return []
        return [part.strip() for part in column.split("+")] if name == "choices" else [column]

    def _column(self, name: str, header: Sequence[str], line: int) -> str | None:
        if name in self._mapped:
            column = self._mapped[name]
            if name == "labels" and self._fixed:
                return None
            there = all(part in header or part.split(".")[0] in header for part in self._parts(name, column))
            return column if column and there else None
        by_name: dict[str, str] = {}
        for column in header:
            by_name.setdefault(_plain(column), column)
        taken = {part for other, column in self._mapped.items() for part in self._parts(other, column)}
        found = [by_name[known] for known in FIELDS[name] if known in by_name and by_name[known] not in taken]
        if len(found) > 1 and _plain(found[0]) != name:
            raise TaskFileError(
                self._file,
                line,
                found[0],
                f"both it and `{found[1]}` could be the {name}: say which, as in cases:{self._file}:{name}={found[0]}",
            )
        return found[0] if found else None

    def _choices(self, column: str | None, header: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int]]:
        if "choices" in self._mapped:
            parts = tuple(self._parts("choices", column)) if column is not None else ()
            return parts, _numbers(parts)
        if column is not None:
            return (column,), {}
        found = _families(header)
        if len(found) > 1:
            first, second = (f"{columns[0]} ..." for columns, _ in found[:2])
            raise TaskFileError(
                self._file,
                0,
                found[0][0][0],
                f"both {first} and {second} could be the choices: say which, as in "
                f"cases:{self._file}:choices={'+'.join(found[0][0])}",
            )
        return found[0] if found else ((), {})


def check_map(name: str, mapped: Mapping[str, str]) -> None:
    """Refuses an empty column map.

    Raises:
        ConfigError: the question is excluded.
    """
    if mapped.get("question") == "":
        raise ConfigError(f"task {name!r}: `question=` names no column, and a case needs a question")


def hint(column: str, header: Sequence[str]) -> str:
    """Error for a column that the user names and the file lacks."""
    close = nearest(column, header)
    there = f"the file has {listed(header)}"
    return f"did you mean {shown(close)}? {there}" if close else there


def listed(header: Sequence[str]) -> str:
    """The first few names of columns, for an error."""
    names = [repr(name)[1:-1][:40] for name in header[:SHOWN]]
    return ", ".join(names + [f"and {len(header) - SHOWN} more"] * (len(header) > SHOWN)) or "none"


def _numbers(columns: Sequence[str]) -> dict[str, int]:
    """Index of each column by the number in which its name ends; empty unless they all have numbers, of their own."""
    found = [re.search(r"\d{1,9}$", column) for column in columns]
    numbers = {str(int(match[0])): index for index, match in enumerate(found) if match is not None}
    return numbers if 1 < len(columns) == len(numbers) else {}


def _plain(column: str) -> str:
    return re.sub(r"[\s-]+", "_", column.strip()).casefold()


def _families(header: Sequence[str]) -> list[tuple[tuple[str, ...], dict[str, int]]]:
    """Runs of columns such as A, B, C or answer0, answer1: their names, and their numbers by index."""
    families: dict[tuple[str, bool], dict[int, str]] = {}
    for column in header:
        found = _FAMILY.fullmatch(_plain(column))
        if found is None or (found[2].isdigit() and not found[1]):
            continue
        digits = found[2].isdigit()
        place = int(found[2]) if digits else ord(found[2]) - ord("a")
        families.setdefault((found[1] or "", digits), {}).setdefault(place, column)
    runs = []
    for (_, digits), columns in families.items():
        start = 1 if digits and 0 not in columns else 0
        run = list[str]()
        while start + len(run) in columns:
            run.append(columns[start + len(run)])
        if len(run) >= 2:
            runs.append((tuple(run), {str(start + place): place for place in range(len(run))} if digits else {}))
    return runs
