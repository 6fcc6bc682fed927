"""HallusionBench in its original format: yes/no questions about pictures, each a claim that the answer is yes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED, answered_claim
from moot.protocols.errors import ConfigError, TaskFileError
from moot.protocols.tasks.claim_fields import claim_case
from moot.protocols.tasks.formats import json_list_rows
from moot.protocols.tasks.picture_files import picture_within
from moot.protocols.tasks.row import ParsedCase, Row, shown
from moot.protocols.tasks.source import locate_within
from moot.protocols.tasks.task import Task

FILE = "HallusionBench.json"
"""File to read from the folder."""

FIGURE_QUESTIONS, EASY_QUESTIONS, HARD_QUESTIONS = "figure_questions", "easy_questions", "hard_questions"
"""Tags: how many questions of the file are about the case's figure, and of how many its question pair consists that ask
about the original (easy) and about the edited figures (hard)."""

UNPACKED = "hallusion_bench"
"""Folder of the authors' unpacked pictures, which may be inside the other one."""

_GOLD = {"1": SUPPORTED, "0": HALLUCINATED}
_TAGS = {
    "category": "category",
    "subcategory": "subcategory",
    "set": "set_id",
    "figure": "figure_id",
    "question": "question_id",
    "visual_input": "visual_input",
}
_ORIGINAL = "0"
_NUMBER, _SIZES = "(number)", "(sizes)"


def hallusionbench_task(folder: str, spec: str, pictures: str = "") -> Task:
    """Task over the folder; `open_task("hallusionbench:DIR")` is the usual way to it.

    Args:
        folder: folder of the file, with the pictures below it.
        spec: as the user wrote it.
        pictures: `present` excludes questions whose picture is missing; `none` includes all and shows no
            picture, for baselines without pictures; empty includes all with theirs.

    Raises:
        ConfigError: `pictures` has another value.
        TaskFileError: there is no such folder, or no such file in it.
    """
    if pictures not in ("", "present", "none"):
        raise ConfigError(f"task 'hallusionbench': `pictures` is `present`, `none` or left out, not {pictures!r}")
    source = locate_within(folder, FILE)
    if source is None:
        raise TaskFileError(folder, 0, "", f"expected a folder with {FILE}, found none in it")
    bench = _Bench(Path(folder).expanduser(), pictures)
    return Task(
        spec=spec,
        name="hallusionbench",
        path=folder,
        labels=CLAIM_LABELS,
        replayable=True,
        read=partial(_placed, partial(json_list_rows, source)),
        parse=bench.claims,
        pictures=bench.pictures,
    )


def _placed(records: partial[Iterator[Row]]) -> Iterator[Row]:
    """Each record with its index in the file, which names its case, and the sizes of its figure's and pair's groups.

    Both refer to the whole file, including excluded records.
    """
    sizes = Counter(unit for row in records() for unit in (_figure(row), _part(row, row.values.get("figure_id"))))
    for number, row in enumerate(records()):
        of_it = {
            FIGURE_QUESTIONS: str(sizes[_figure(row)]),
            EASY_QUESTIONS: str(sizes[_part(row, _ORIGINAL)]),
            HARD_QUESTIONS: str(sizes[_part(row, None)]),
        }
        yield Row(row.file, row.line, {**row.values, _NUMBER: number, _SIZES: of_it}, row.problem)


def _figure(row: Row) -> tuple[str, ...]:
    return _found(row, "category", "subcategory", "set_id", "figure_id")


def _part(row: Row, figure: object) -> tuple[str, ...]:
    """Easy part of the record's question pair for the original figure, else the hard one."""
    part = "easy" if figure == _ORIGINAL else "hard"
    return (*_found(row, "category", "subcategory", "set_id", "question_id"), part)


def _found(row: Row, *columns: str) -> tuple[str, ...]:
    """Content of the columns, validated when the claim is built."""
    return tuple(repr(row.values.get(column)) for column in columns)


class _Bench:
    """Claims of the records, and locations of their pictures."""

    def __init__(self, folder: Path, which: str) -> None:
        self._folder, self._present_only, self._none = folder, which == "present", which == "none"

    def claims(self, row: Row) -> Iterator[ParsedCase]:
        """Claim of a record; none where its picture is missing and such records are excluded.

        Raises:
            TaskFileError: a field is missing, blank or of the wrong type, or the answer is neither 0 nor 1.
        """
        row.require((*_TAGS.values(), "question", "gt_answer", "filename"))
        tags = {name: row.text(column) for name, column in _TAGS.items()}
        answer = row.text("gt_answer")
        if answer not in _GOLD:
            raise row.error("gt_answer", f"expected '0' or '1', found {shown(answer)}")
        claim = claim_case(
            answered_claim(row.text("question"), "Yes"),
            _GOLD[answer],
            id=f"hallusionbench-{row.values[_NUMBER]}",
            group="/".join((tags["category"], tags["subcategory"], tags["set"])),
            tags={**tags, **cast(dict[str, str], row.values[_SIZES])},
        )
        named = _filename(row)
        if not (self._present_only and named is not None and self._find(row, named) is None):
            yield claim

    def pictures(self, row: Row) -> tuple[Path, ...]:
        """File of the record's picture, if it needs one and pictures are shown.

        Raises:
            TaskFileError: it is missing, or its name leads out of the folder.
        """
        named = _filename(row)
        if named is None or self._none:
            return ()
        found = self._find(row, named)
        if found is None:
            expected = f"expected the picture {shown(named)} in {self._folder}, or in {UNPACKED} there, found none"
            mend = "unpack the authors' zip of pictures there, or add :pictures=present to the task"
            raise row.error("filename", f"{expected}: {mend}")
        return (found,)

    def _find(self, row: Row, name: str) -> Path | None:
        folders = (self._folder, self._folder / UNPACKED)
        found = (picture_within(row, "filename", folder, name) for folder in folders)
        return next((file for file in found if file is not None), None)


def _filename(row: Row) -> str | None:
    """Name of the record's picture; None for a question without one."""
    if row.values["filename"] is not None:
        return row.text("filename")
    if row.text("visual_input") != "0":
        raise row.error("filename", "expected a picture, as `visual_input` is not 0, found null")
    return None
