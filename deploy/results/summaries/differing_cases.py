"""Differing cases of runs over the same cases: gold label, each run's answer, and whether it is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.detection.claims import ids_trained_on, read_claims
from moot.deploy.results.record.run_record import RunRecord
from moot.deploy.results.report.blocks import Block, Note, Table
from moot.deploy.results.text import cases as number_of_cases
from moot.deploy.results.text import visible_line

MOST = 50
"""Cases listed in a terminal; JSON has all."""

_QUESTION = 100
"""Characters of a question in a table; a terminal shows as many as fit on a line."""


class RunAnswer(FrozenModel):
    """Answer of one run to a case.

    Attributes:
        answer: the answer; None for a verdict without one, a failed case and one that has no verdict.
        correct: whether it is right; None when unknown.
        state: `finished`, `failed`, or without a verdict `open` or `withdrawn`.
    """

    answer: str | None
    correct: bool | None
    state: str


class DifferingCase(FrozenModel):
    """Case that the runs do not all answer alike.

    Attributes:
        gold: the gold label; None without one.
        answers: by run, in the order given, the baseline first.
    """

    case_id: str
    question: str
    gold: str | None
    answers: list[RunAnswer]

    @property
    def outcome_differs(self) -> bool:
        """Whether some runs are right and others are wrong, failed or open."""
        return 0 < sum(each.correct is True for each in self.answers) < len(self.answers)


def differing_cases(runs: Sequence[RunRecord | str | Path]) -> list[DifferingCase]:
    """Differing cases of runs: those whose outcome differs first, then in the order of the first run's file.

    Only cases with the same content in all runs are compared, without claims that the classifier of one of them was
    trained on, or claims of their groups.

    Raises:
        RecordError: a record cannot be read.
    """
    records = [RunRecord.of(run) for run in runs]
    tables = [_contents(record) for record in records]
    trained_on = frozenset[str]().union(*(ids_trained_on(read_claims(record)) for record in records))
    found = []
    columns = ["case_id", "content_hash", "question", "gold", "index"]
    for row in records[0].cases.select(columns).sort_by("index").to_pylist():
        case_id = row["case_id"]
        if case_id in trained_on or any(each.get(case_id) != row["content_hash"] for each in tables):
            continue
        answers = [_answer(record, case_id) for record in records]
        if len({(each.answer, each.correct, each.state) for each in answers}) > 1:
            found.append(DifferingCase(case_id=case_id, question=row["question"], gold=row["gold"], answers=answers))
    return sorted(found, key=lambda each: not each.outcome_differs)


def _contents(record: RunRecord) -> dict[str, str]:
    columns = (record.cases[name].to_pylist() for name in ("case_id", "content_hash"))
    return dict(zip(*columns, strict=True))


def _answer(record: RunRecord, case_id: str) -> RunAnswer:
    verdict = record.by_case.get(case_id)
    if verdict is None:
        return RunAnswer(answer=None, correct=None, state=record.without_verdict(case_id))
    state = "failed" if verdict.failed else "finished"
    return RunAnswer(answer=None if verdict.failed else verdict.answer, correct=verdict.correct, state=state)


def answer_words(found: RunAnswer) -> str:
    """Text of an answer and whether it is right.

    >>> answer_words(RunAnswer(answer="Yes", correct=True, state="finished"))
    'Yes (right)'
    """
    if found.state != "finished":
        return found.state
    right = {True: " (right)", False: " (wrong)", None: ""}[found.correct]
    return f"{'none' if found.answer is None else found.answer}{right}"


def differing_blocks(found: Sequence[DifferingCase], names: Sequence[str], most: int = MOST) -> Iterator[Block]:
    """Report blocks of differing cases: a table with a column for each run's answer.

    Args:
        found: see `differing_cases`.
        names: names of the runs.
        most: the number of cases listed at most.
    """
    outcome = sum(each.outcome_differs for each in found)
    if not found:
        yield Note("The runs give the same answers to all cases that they share.")
        return
    rows = [
        (
            each.case_id,
            _start(each.question),
            each.gold or "-",
            *map(answer_words, each.answers),
        )
        for each in found[:most]
    ]
    title = f"{number_of_cases(len(found))} with different answers, {outcome:,} of them right in some runs only"
    header = ("case", "question", "gold", *names)
    terse = Table(title, (header[0], *header[2:], header[1]), [(a, *rest, q) for a, q, *rest in rows], one_line=True)
    yield Table(title, header, rows, terse=terse, case_column=0)
    if len(found) > most:
        yield Note(f"{len(found) - most:,} more: --format json lists all", "dim")


def _start(question: str) -> str:
    line = visible_line(question)
    return line if len(line) <= _QUESTION else f"{line[: _QUESTION - 1].rstrip()}…"
