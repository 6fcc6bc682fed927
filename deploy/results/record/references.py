"""References of a run's cases, and scoring by them."""

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


class References:
    """The references of a run's cases.

    Args:
        by_case: by case id; a case that is missing here is scored by label.
    """

    def __init__(self, by_case: Mapping[str, Reference]) -> None:
        self._by_case = by_case

    @classmethod
    def of(cls, folder: str | Path) -> References:
        """References of a run; older records without any score by label.

        Raises:
            RecordError: when the record cannot be read.
        """
        return cls.from_table(read_table(folder, "cases", _REFERENCE_COLUMNS))

    @classmethod
    def from_table(cls, cases: pa.Table) -> References:
        """Those of a run whose cases were read."""
        columns = [cases[name].to_pylist() for name in ("case_id", *_REFERENCE_COLUMNS)]
        plain = Reference()
        return cls(
            {
                case_id: _reference(*of_case) if any(of_case) else plain
                for case_id, *of_case in zip(*columns, strict=True)
            }
        )

    def __getitem__(self, case_id: str) -> Reference:
        """The reference of a case."""
        return self._by_case.get(case_id, Reference())

    def independent(self, case_ids: Iterable[str]) -> bool:
        """Whether no two of the cases are of one group."""
        groups = [group for case_id in case_ids if (group := self[case_id].group)]
        return len(set(groups)) == len(groups)

    def correct(self, case_id: str, answer: str | None, gold: str | None) -> bool | None:
        """Whether an answer to a case is right; see `is_correct`."""
        return is_correct(answer, gold, self[case_id])


def scored_verdicts(verdicts: pa.Table, folder: str | Path) -> pa.Table:
    """Rows of `verdicts`, scored as they would be written now: no answer is wrong.

    Records from before that was so have null there. A case that is a reply to judge asks for no answer: it stays null.

    Args:
        verdicts: with at least `answer`, `failed`, `gold` and `correct`.
        folder: the run's folder.

    Raises:
        RecordError: when the record cannot be read.
    """
    unscored = pc.and_(verdicts["correct"].is_null(), verdicts["gold"].is_valid())
    silent = pc.and_(verdicts["answer"].is_null(), pc.invert(pc.fill_null(verdicts["failed"], False)))
    unscored = pc.and_(unscored, silent)
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
