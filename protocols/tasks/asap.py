"""ASAP-AES as it is downloaded (`training_set_rel3.tsv`): school essays, a case per essay and trait."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from moot.protocols.case import Criterion
from moot.protocols.errors import ConfigError, TaskFileError
from moot.protocols.tasks.asap_criteria import ESSAY_SETS, EssaySet
from moot.protocols.tasks.essays import parse_essay, refer_essay, trait_rows
from moot.protocols.tasks.formats import tab_rows
from moot.protocols.tasks.row import Row, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task

DEFAULT_SETS = "7,8"
"""The essay sets that are read when none are named."""

COLUMNS = ("essay_id", "essay_set", "essay")
"""What the header needs besides the raters' columns of the sets that are read."""


def asap_task(source: Source, spec: str, sets: str = DEFAULT_SETS) -> Task:
    """A task over ASAP's essays; `open_task("asap:PATH")` is the usual way to it.

    Args:
        source: the file.
        spec: as the user wrote it.
        sets: the essay sets to read, with commas between them.

    Raises:
        ConfigError: a set is none, or has no trait scores.
    """
    wanted = {number: ESSAY_SETS[number] for number in _numbers(sets)}
    return Task(
        spec=spec,
        name="asap",
        path=source.file,
        labels=None,
        replayable=source.replayable,
        read=partial(_rows, source, wanted),
        parse=parse_essay,
        refer=refer_essay,
    )


def _numbers(sets: str) -> list[int]:
    numbers = []
    for name in sets.split(","):
        if not (name.strip().isascii() and name.strip().isdigit()) or int(name) not in range(1, 9):
            raise ConfigError(f"task 'asap': `set` is one of 7 and 8, or both as 7,8, not {name.strip()!r}")
        if int(name) not in ESSAY_SETS:
            raise ConfigError(
                f"task 'asap': essay set {int(name)} has no trait scores, only sets 7 and 8 have some: write set=7,8"
            )
        numbers.append(int(name))
    return numbers


def _rows(source: Source, wanted: dict[int, EssaySet]) -> Iterator[Row]:
    columns = dict.fromkeys(COLUMNS)
    for one in wanted.values():
        for place in range(len(one.criteria)):
            columns.update(dict.fromkeys(_columns(one, place)))
    for row in tab_rows(source, tuple(columns), long="essay"):
        if row.problem is not None:
            yield row
            continue
        number = row.text("essay_set", default="").strip()
        found = wanted.get(int(number)) if number.isascii() and number.isdigit() else None
        if found is not None:
            yield from _traits(row, int(number), found)
        elif number not in map(str, range(1, 9)):
            problem = row.error("essay_set", f"expected 1 to 8, found {shown(number)}")
            yield Row(row.file, row.line, {}, problem)


def _columns(one: EssaySet, place: int) -> list[str]:
    return [f"rater{rater}_trait{place + 1}" for rater in range(1, one.raters + 1)]


def _traits(row: Row, number: int, found: EssaySet) -> Iterator[Row]:
    identity = row.text("essay_id", default="").strip()
    if not identity:
        yield Row(row.file, row.line, {}, row.error("essay_id", "expected a number, found none"))
        return
    try:
        ratings = {
            criterion.trait: [_score(row, column, criterion) for column in _columns(found, place)]
            for place, criterion in enumerate(found.criteria)
        }
    except TaskFileError as problem:
        yield Row(row.file, row.line, {}, problem)
        return
    part = f"asap-{number}"
    yield from trait_rows(row, row.text("essay", default=""), f"{part}-{identity}", found.criteria, ratings, part)


def _score(row: Row, column: str, criterion: Criterion) -> float | None:
    """A cell's whole score; None for an empty cell, which is an essay that this rater did not score."""
    text = row.text(column, default="").strip()
    if not text:
        return None
    score = int(text) if text.isascii() and text.isdigit() else None
    if score is None or not criterion.lowest <= score <= criterion.highest:
        expected = f"expected a whole number from {criterion.lowest} to {criterion.highest} or nothing"
        raise row.error(column, f"{expected}, found {shown(text)}")
    return float(score)
