"""Table of a run's cases, column by column: how each ended, how sure, how disputed, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.record.tables import read_table
from moot.deploy.results.endings import ending_words
from moot.deploy.results.record import VerdictRow
from moot.deploy.results.run_report.data import RunData

Outcome = Literal["right", "wrong", "unscored", "failed", "open"]
"""How a case ended: `unscored` has a verdict but nothing to compare it with, `open` has no verdict yet."""

_CELL = (30, 120)
_COLUMN = 3_000_000
"""Fewest and most characters of a text that the table shows, and about how many a column may have."""

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class CaseColumn:
    """A column of the table.

    Attributes:
        name: by which a page knows it.
        title: as it is shown.
        values: a text, a number or None for each case.
        note: what it means.
        coded: whether few values occur many times.
    """

    name: str
    title: str
    values: Sequence[str | float | None]
    note: str = ""
    coded: bool = False


def case_columns(run: RunData) -> list[CaseColumn]:
    """The table of a run's cases, in the order of the task; a column that has nothing for any case is left out."""
    cases = read_table(run.folder, "cases", ["index", "question", "title", "gold"]).sort_by("index")
    ids: list[str] = cases["case_id"].to_pylist()
    verdicts = [run.by_case.get(case_id) for case_id in ids]
    ends = _ends(run, ids)
    disputed = _disagreement(run, ids, ends)
    columns = [
        CaseColumn("case", "Case", ids),
        CaseColumn("outcome", "Outcome", [outcome(verdict) for verdict in verdicts], coded=True),
        CaseColumn("question", "Question", _questions(cases)),
        CaseColumn("answer", "Answer", clipped([verdict and verdict.answer for verdict in verdicts]), coded=True),
        CaseColumn("gold", "Gold", clipped(cases["gold"].to_pylist()), "the right answer; no model saw it", coded=True),
        CaseColumn("how", "How it ended", [ending_words(v.how) if v and v.how else None for v in verdicts], coded=True),
        CaseColumn("rounds", "Rounds", [None if v is None or v.failed else v.rounds for v in verdicts]),
        CaseColumn("confidence", "Confidence", [end.confidence for end in ends]),
        disputed,
        CaseColumn("tokens", "Tokens", [end.tokens for end in ends], "of the replies that the verdict rests on"),
        CaseColumn("failure", "Failure", [v.failure if v and v.failed else None for v in verdicts], coded=True),
    ]
    basic = ("case", "question", "outcome")
    return [each for each in columns if each.name in basic or any(value is not None for value in each.values)]


def outcome(verdict: VerdictRow | None) -> Outcome:
    """How a case ended, in one word."""
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
    if not column.coded:
        return data | {"values": [_rounded(value) for value in column.values]}
    words = {word: place for place, word in enumerate(dict.fromkeys(v for v in column.values if v is not None))}
    codes = [None if value is None else words[value] for value in column.values]
    return data | {"words": list(words), "values": codes}


def _rounded(value: str | float | None) -> str | float | None:
    return round(value, _DIGITS) if isinstance(value, float) else value


def _questions(cases: pa.Table) -> list[str | None]:
    """The start of each question, on one line; lines that all questions begin with are left out."""
    questions = [question or "" for question in cases["question"].to_pylist()]
    after = _shared_lines(questions)
    starts = [question[after : after + 2 * _CELL[1]] for question in questions]
    return clipped([" ".join(start.split()) for start in starts])


def clipped(texts: Sequence[str | None]) -> list[str | None]:
    """Texts of a column, as much of each as there is room for."""
    fewest, most = _CELL
    width = min(most, max(fewest, _COLUMN // max(1, len(texts))))
    return [text if text is None or len(text) <= width else text[: width - 1] + "…" for text in texts]


def _shared_lines(texts: Sequence[str]) -> int:
    """How many characters the lines have that all texts begin with; 0 for a single text."""
    if len(texts) < 2:
        return 0
    low, high = min(texts), max(texts)
    differ = next((i for i, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    return low.rfind("\n", 0, differ) + 1


class _End(NamedTuple):
    """What only the table of verdicts says of how a case ended."""

    confidence: float | None = None
    tokens: int | None = None
    d: float | None = None
    jsd: float | None = None


class _Payload(msgspec.Struct):
    """What a verdict's payload says of disagreement."""

    d: Any = None
    jsd: Any = None


def _ends(run: RunData, ids: Sequence[str]) -> list[_End]:
    names = ["confidence", "prompt_tokens", "completion_tokens", "calls_without_usage", "payload"]
    columns = read_table(run.folder, "verdicts", names).to_pydict()
    read = msgspec.json.Decoder(_Payload).decode
    found: dict[tuple[str, int], _End] = {}
    for case_id, attempt, confidence, prompt, completion, silent, payload in zip(
        columns["case_id"], columns["attempt"], *(columns[name] for name in names), strict=True
    ):
        tokens = None if prompt is None or completion is None or silent else prompt + completion
        said = read(payload) if payload else _Payload()
        found[case_id, attempt] = _End(confidence, tokens, _known(said.d), _known(said.jsd))
    verdicts = run.by_case
    return [found[case_id, verdicts[case_id].attempt] if case_id in verdicts else _End() for case_id in ids]


def _known(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _disagreement(run: RunData, ids: Sequence[str], ends: Sequence[_End]) -> CaseColumn:
    """How far agents were apart: D of the first answers, JSD of the last round, or the share off the majority."""
    if any(end.d is not None for end in ends):
        return CaseColumn("disagreement", "D", [end.d for end in ends], "disagreement of the first answers")
    if any(end.jsd is not None for end in ends):
        return CaseColumn("disagreement", "JSD", [end.jsd for end in ends], "divergence of the last distributions")
    shares = _off_the_majority(run)
    note = "share of the first answers that differ from the most frequent one"
    return CaseColumn("disagreement", "Off majority", [shares.get(case_id) for case_id in ids], note)


def _off_the_majority(run: RunData) -> Mapping[str, float]:
    """By case, the share of first answers other than the most frequent; of cases with two first answers or more."""
    turns = read_table(run.folder, "turns", ["answer"])
    first = pc.and_(pc.match_substring_regex(turns["path"], r"^opening/agent/\d+$"), pc.is_valid(turns["answer"]))
    turns = turns.filter(pc.and_(first, pc.invert(turns["superseded"])))
    votes: dict[tuple[str, int], Counter[str]] = {}
    for case_id, attempt, answer in zip(
        turns["case_id"].to_pylist(), turns["attempt"].to_pylist(), turns["answer"].to_pylist(), strict=True
    ):
        votes.setdefault((case_id, attempt), Counter())[answer] += 1
    latest = {verdict.key for verdict in run.verdicts}
    return {
        case_id: 1.0 - max(counts.values()) / counts.total()
        for (case_id, attempt), counts in votes.items()
        if counts.total() > 1 and (case_id, attempt) in latest
    }
