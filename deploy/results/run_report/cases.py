"""Table of a run's cases, column by column: how each ended, how sure, how disputed, what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.run_report.case_table import DEBATED, CaseTable, case_table
from moot.deploy.results.run_report.data import RunData

Outcome = Literal["right", "wrong", "unscored", "failed", "open", "withdrawn"]
"""Outcome of a case: `unscored` has a verdict but nothing to compare it with, `open` and `withdrawn` have none."""

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class CaseColumn:
    """A column of the table.

    Attributes:
        name: id in a page.
        title: as it is shown.
        values: a text, a number or None for each case.
        note: what it means.
        coded: whether few values occur many times.
        hidden: whether the page reads it without showing it.
    """

    name: str
    title: str
    values: Sequence[str | float | None]
    note: str = ""
    coded: bool = False
    hidden: bool = False


_HEADS = {
    "case": ("Case", "", False),
    "outcome": ("Outcome", "", True),
    "question": ("Question", "", False),
    "answer": ("Answer", "", True),
    "gold": ("Gold", "the right answer; no model saw it", True),
    "how": ("How it ended", "", True),
    "rounds": ("Rounds", "", False),
    "confidence": ("Confidence", "", False),
    "disagreement": ("", "", False),
    "tokens": ("Tokens", "of the replies that the verdict rests on", False),
    "prompts": ("Prompts", "cut: the server seems to have read only a part of a prompt", True),
    "failure": ("Failure", "", True),
    DEBATED: ("Debated", "1 for a case that finished after a debate", False),
}
"""Title, note and whether few values occur many times, by column."""

_DISAGREEMENT = {
    "d": ("D", "disagreement of the first answers"),
    "jsd": ("JSD", "divergence of the last distributions"),
    "majority": ("Off majority", "share of the first answers that differ from the most frequent one"),
}

_ALWAYS = ("case", "question", "outcome")


class CaseHead(NamedTuple):
    """Title and meaning of a column of the table; see `CaseColumn`."""

    name: str
    title: str
    note: str
    coded: bool
    hidden: bool


def case_heads(table: CaseTable) -> list[CaseHead]:
    """The table's columns in order; one that has nothing for any case is left out."""
    heads = [CaseHead(name, *_HEADS[name], hidden=name == DEBATED) for name in table.rows.column_names]
    title, note = _DISAGREEMENT[table.disagreement]
    heads = [head._replace(title=title, note=note) if head.name == "disagreement" else head for head in heads]
    return [head for head in heads if head.name in _ALWAYS or table.rows[head.name].null_count < table.rows.num_rows]


def case_columns(run: RunData) -> list[CaseColumn]:
    """The table of a run's cases, in the order of the task, as values."""
    table = case_table(run)
    return [
        CaseColumn(head.name, head.title, table.rows[head.name].to_pylist(), head.note, head.coded, head.hidden)
        for head in case_heads(table)
    ]


def outcome(verdict: VerdictRow | None) -> Outcome:
    """Outcome of a case, in one word."""
    if verdict is None:
        return "open"
    if verdict.failed:
        return "failed"
    return "unscored" if verdict.correct is None else "right" if verdict.correct else "wrong"


def cases_data(columns: Iterable[CaseColumn]) -> dict[str, Any]:
    """The table as JSON values: numbers as they are, words that repeat as places in a list of words."""
    return {"columns": [_column_data(column) for column in columns]}


def _column_data(column: CaseColumn) -> dict[str, Any]:
    data: dict[str, Any] = {"name": column.name, "title": column.title, "note": column.note}
    if column.hidden:
        data["hidden"] = True
    if not column.coded:
        return data | {"values": _rounded(column.values)}
    words = {word: place for place, word in enumerate(dict.fromkeys(v for v in column.values if v is not None))}
    codes = [None if value is None else words[value] for value in column.values]
    return data | {"words": list(words), "values": codes}


def _rounded(values: Sequence[str | float | None]) -> Sequence[str | float | None]:
    """The values of a column, which are of one type."""
    if not isinstance(next((value for value in values if value is not None), None), float):
        return values
    return [round(value, _DIGITS) if isinstance(value, float) else value for value in values]
