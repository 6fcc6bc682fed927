"""References of a run's cases, and scoring by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
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
        """Those of a run; records from before there were any score by label.

        Raises:
            RecordError: when the record cannot be read.
        """
        rows = read_table(folder, "cases", _REFERENCE_COLUMNS).to_pylist()
        return cls({row["case_id"]: _reference(row) for row in rows})

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


def rescore_verdicts(folder: str | Path, rows: Iterable[dict[str, Any]]) -> None:
    """Score rows of `verdicts` in place as they would be written now: no answer is wrong.

    Records from before that was so have null there. A case that is a reply to judge asks for no answer: it stays null.

    Raises:
        RecordError: when the record cannot be read.
    """
    without_answer = [row for row in rows if not row["failed"] and row["answer"] is None]
    unscored = [row for row in without_answer if row["correct"] is None and row["gold"] is not None]
    if not unscored:
        return
    cases = read_table(folder, "cases", ["judged"])
    replies = set(cases.filter(pc.is_valid(cases["judged"]))["case_id"].to_pylist())
    for row in unscored:
        row["correct"] = None if row["case_id"] in replies else False


def _reference(row: Mapping[str, Any]) -> Reference:
    return Reference(
        scoring=row["scoring"] or "label",
        accepted=tuple(row["accepted"] or ()),
        ratings=tuple(row["ratings"] or ()),
        group=row["group"] or "",
        part=row["part"] or "",
        tags=msgspec.json.decode(row["tags"]) if row["tags"] else {},
    )
