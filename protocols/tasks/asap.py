"""ASAP-AES in its original format (`training_set_rel3.tsv`): school essays, a case per essay and trait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from moot.protocols.case import Criterion
from moot.protocols.errors import ConfigError
from moot.protocols.tasks.asap_criteria import ESSAY_SETS, EssaySet
from moot.protocols.tasks.essays import trait_cases
from moot.protocols.tasks.formats import tab_rows
from moot.protocols.tasks.row import ParsedCase, Row, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import FileLayout, Task

COLUMNS = ("essay_id", "essay_set", "essay")
"""Required columns besides the raters' columns of the requested sets."""


def asap_task(source: Source, spec: str, name: str, set: str = "7,8") -> Task:
    """Task over ASAP's essays; `open_task("asap:PATH")` is the usual way to it.

    Args:
        source: the file.
        spec, name: see `Task`.
        set: the essay sets to read, with commas between them.

    Raises:
        ConfigError: a set does not exist, or has no trait scores.
    """
    wanted = {number: ESSAY_SETS[number] for number in _numbers(set)}
    columns = dict.fromkeys(COLUMNS)
    for one in wanted.values():
        for place in range(len(one.criteria)):
            columns.update(dict.fromkeys(_columns(one, place)))
    rows = partial(tab_rows, columns=tuple(columns), long="essay")
    return FileLayout(rows, partial(_cases, wanted)).task(source, spec, name)


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


def _cases(wanted: Mapping[int, EssaySet], row: Row) -> Iterator[ParsedCase]:
    """Cases of an essay, if its set is requested."""
    number = row.text("essay_set", default="").strip()
    found = wanted.get(int(number)) if number.isascii() and number.isdigit() else None
    if found is None:
        if number not in map(str, range(1, 9)):
            raise row.error("essay_set", f"expected 1 to 8, found {shown(number)}")
        return
    identity = row.text("essay_id", default="").strip()
    if not identity:
        raise row.error("essay_id", "expected a number, found none")
    ratings = {
        criterion.trait: [_score(row, column, criterion) for column in _columns(found, place)]
        for place, criterion in enumerate(found.criteria)
    }
    part = f"asap-{number}"
    yield from trait_cases(row.text("essay"), f"{part}-{identity}", found.criteria, ratings, part)


def _columns(one: EssaySet, place: int) -> list[str]:
    return [f"rater{rater}_trait{place + 1}" for rater in range(1, one.raters + 1)]


def _score(row: Row, column: str, criterion: Criterion) -> float | None:
    """Whole score in a cell; None for an empty cell, for an essay that this rater did not score."""
    text = row.text(column, default="").strip()
    if not text:
        return None
    score = int(text) if text.isascii() and text.isdigit() else None
    if score is None or not criterion.lowest <= score <= criterion.highest:
        expected = f"expected a whole number from {criterion.lowest} to {criterion.highest} or nothing"
        raise row.error(column, f"{expected}, found {shown(text)}")
    return float(score)
