"""References of a run's cases, scoring of answers by them, and groups of dependent cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.tables import read_table
from moot.protocols.case import Reference
from moot.protocols.tasks.scoring import is_correct

_REFERENCE_COLUMNS = ["scoring", "accepted", "ratings", "group", "part", "tags"]

GROUP_COLUMNS = ["content_hash", "group"]
"""Columns of `cases` that determine the groups of dependent cases."""

_BY_LABEL = Reference()


class References:
    """References of a run's cases.

    Args:
        by_case: references by case id; a case without one is scored by label.
        groups: groups of the dependent cases, see `case_groups`.
    """

    def __init__(self, by_case: Mapping[str, Reference], groups: Mapping[str, str]) -> None:
        self._by_case, self._groups = by_case, groups
        self._correct: dict[tuple[int, str | None, str | None], bool | None] = {}

    @classmethod
    def of(cls, folder: str | Path) -> References:
        """References of a run; cases of older records without references are scored by label.

        Raises:
            RecordError: the record cannot be read.
        """
        return cls.from_table(read_table(folder, "cases", ["content_hash", *_REFERENCE_COLUMNS]))

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
        return cls(by_case, case_groups(cases))

    def __getitem__(self, case_id: str) -> Reference:
        """Reference of a case."""
        return self._by_case.get(case_id, _BY_LABEL)

    def group(self, case_id: str) -> str:
        """Name of a case's group, see `case_groups`; the case's id if it is independent."""
        return self._groups.get(case_id, case_id)

    def number_of_groups(self, case_ids: Iterable[str]) -> int | None:
        """Number of groups of these cases; None if all are independent."""
        ids = list(case_ids)
        n = len(set(map(self.group, ids)))
        return n if n < len(ids) else None

    def correct(self, case_id: str, answer: str | None, gold: str | None) -> bool | None:
        """Whether an answer to a case is right; see `is_correct`."""
        reference = self[case_id]
        key = (id(reference), answer, gold)
        if key not in self._correct:
            self._correct[key] = is_correct(answer, gold, reference)
        return self._correct[key]


def case_groups(cases: pa.Table) -> dict[str, str]:
    """Name of the group of each case that its task puts into one, or that equals another case.

    Cases are dependent if their task puts them into one group, or if all that may be sent of them is equal, pictures
    included. Groups that have an equal case in common are one. In two runs of the same cases a group has one name.

    Args:
        cases: table with `case_id` and `GROUP_COLUMNS`.
    """
    contents, given = (pc.fill_null(cases[name], "") for name in GROUP_COLUMNS)
    dependent = dependent_cases(pa.table({"case_id": cases["case_id"], "content": contents, "given": given}))
    ids, *rows = (dependent[name].to_pylist() for name in ("case_id", "number", "content", "given"))
    names = dict[int, str]()
    for number, content, group in zip(*rows, strict=True):
        name = f"group {group}" if group else f"text {content}"
        names[number] = min(name, names.get(number, name))
    return {case_id: names[number] for case_id, number in zip(ids, rows[0], strict=True)}


def dependent_cases(cases: pa.Table) -> pa.Table:
    """Cases that depend on others, or are in a group, with the number of their group.

    Cases are dependent if their task puts them into one group, or if their content is equal. Groups that have an equal
    case in common are one.

    Args:
        cases: with `case_id`, `content` and `given`, the group; empty where unknown or without one.

    Returns:
        their rows, with the column `number`.
    """
    n, columns = cases.num_rows, [cases[name].combine_chunks() for name in ("content", "given")]
    contents, given = (column.dictionary_encode() for column in columns)
    known, in_groups = (pc.not_equal(column, "").to_numpy(zero_copy_only=False) for column in columns)
    if len(contents.dictionary) == n and not in_groups.any():
        return cases.slice(0, 0).append_column("number", pa.array([], pa.int32()))
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = np.concatenate([np.flatnonzero(known), np.flatnonzero(in_groups)])
    keys = np.concatenate([n + contents.indices.to_numpy()[known], 2 * n + given.indices.to_numpy()[in_groups]])
    edges = coo_array((np.ones(len(rows), np.bool_), (rows, keys)), shape=(3 * n, 3 * n))
    number = connected_components(edges, directed=False)[1][:n]
    dependent = np.flatnonzero((np.bincount(number)[number] > 1) | in_groups)
    return cases.take(dependent).append_column("number", pa.array(number[dependent]))


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
