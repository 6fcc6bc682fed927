"""References of a run's cases, and scoring of answers by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.tables import read_table
from moot.protocols.case import Reference
from moot.protocols.tasks.scoring import is_correct

_REFERENCE_COLUMNS = ["scoring", "accepted", "ratings", "group", "part", "tags"]


_BY_LABEL = Reference()


class References:
    """References of a run's cases.

    Args:
        by_case: references by case id; a case without one is scored by label.
    """

    def __init__(self, by_case: Mapping[str, Reference]) -> None:
        self._by_case = by_case
        self._in_groups = any(reference.group for reference in {id(each): each for each in by_case.values()}.values())
        self._correct: dict[tuple[int, str | None, str | None], bool | None] = {}

    @classmethod
    def of(cls, folder: str | Path) -> References:
        """References of a run; cases of older records without references are scored by label.

        Raises:
            RecordError: the record cannot be read.
        """
        return cls.from_table(read_table(folder, "cases", _REFERENCE_COLUMNS))

    @classmethod
    def from_table(cls, cases: pa.Table) -> References:
        """References from the table of a run's cases."""
        columns = [cases[name].to_pylist() for name in ("case_id", *_REFERENCE_COLUMNS)]
        known: dict[str, Reference] = {}  # most cases of a task have equal references
        by_case = {}
        for case_id, *of_case in zip(*columns, strict=True):
            form = repr(of_case)
            if form not in known:
                known[form] = _reference(*of_case)
            by_case[case_id] = known[form]
        return cls(by_case)

    def __getitem__(self, case_id: str) -> Reference:
        """Reference of a case."""
        return self._by_case.get(case_id, _BY_LABEL)

    def group(self, case_id: str) -> str:
        """Group of a case; the case's id if it has none."""
        return self[case_id].group or case_id

    def independent(self, case_ids: Iterable[str]) -> bool:
        """Whether no two of the cases belong to one group."""
        if not self._in_groups:
            return True
        groups = [group for case_id in case_ids if (group := self[case_id].group)]
        return len(set(groups)) == len(groups)

    def correct(self, case_id: str, answer: str | None, gold: str | None) -> bool | None:
        """Whether an answer to a case is right; see `is_correct`."""
        reference = self[case_id]
        key = (id(reference), answer, gold)
        if key not in self._correct:
            self._correct[key] = is_correct(answer, gold, reference)
        return self._correct[key]


def scored_verdicts(verdicts: pa.Table, folder: str | Path) -> pa.Table:
    """Rows of `verdicts`, scored by the current rule: a verdict without an answer is wrong.

    Older records have null in these rows. A case that is a reply to judge has no answer, so it stays null.

    Args:
        verdicts: a table with at least `answer`, `failed`, `gold` and `correct`.
        folder: the run's folder.

    Raises:
        RecordError: the record cannot be read.
    """
    unscored = pc.and_(verdicts["correct"].is_null(), verdicts["gold"].is_valid())
    without_answer = pc.and_(verdicts["answer"].is_null(), pc.invert(pc.fill_null(verdicts["failed"], False)))
    unscored = pc.and_(unscored, without_answer)
    if not pc.any(unscored).as_py():
        return verdicts
    cases = read_table(folder, "cases", ["judged"])
    replies = cases.filter(pc.is_valid(cases["judged"]))["case_id"].combine_chunks()
    wrong = pc.and_(unscored, pc.invert(pc.is_in(verdicts["case_id"], value_set=replies)))
    correct = pc.if_else(wrong, False, verdicts["correct"])
    return verdicts.set_column(verdicts.column_names.index("correct"), "correct", correct)


def _reference(
    scoring: Any, accepted: Any, ratings: Any, group: str | None, part: str | None, tags: str | None
) -> Reference:
    return Reference(
        scoring=scoring or "label",
        accepted=tuple(accepted or ()),
        ratings=tuple(ratings or ()),
        group=group or "",
        part=part or "",
        tags=msgspec.json.decode(tags) if tags else {},
    )
