"""Public sets of questions in their original formats: BoolQ, GSM8K, CosmosQA, NQ-open."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from moot.protocols.case import Case, Reference
from moot.protocols.claims import CLAIM_LABELS, SUPPORTED, answered_claim
from moot.protocols.errors import ConfigError
from moot.protocols.tasks.claim_fields import claim_case
from moot.protocols.tasks.formats import csv_or_jsonl_rows, jsonl_rows
from moot.protocols.tasks.row import ParsedCase, Row, is_absent, is_blank, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import FileLayout, Task
from moot.protocols.text.numbers import stated_number

LETTERS = ("A", "B", "C", "D")
"""Letters of `answer0` to `answer3`."""

COLUMNS = ("id", "question", "answer0", "answer1", "answer2", "answer3")
"""Fields of every row; `context` is optional, and `label`, as in the public test set."""


def _cosmosqa(row: Row) -> Iterator[ParsedCase]:
    row.require(COLUMNS)
    case = Case(
        id=row.identity(),
        question=row.text("question"),
        labels=LETTERS,
        choices=tuple(row.text(f"answer{n}") for n in range(4)),
        passage=row.text("context", default=""),
    )
    yield ParsedCase(case, _letter(row))


def _letter(row: Row) -> str | None:
    label = row.values.get("label")
    if is_absent(label):
        return None
    text = str(label).strip() if isinstance(label, (int, str)) and not isinstance(label, bool) else ""
    if text not in ("0", "1", "2", "3"):
        raise row.error("label", f"expected 0, 1, 2 or 3, found {shown(label)}")
    return LETTERS[int(text)]


COSMOSQA = FileLayout(partial(csv_or_jsonl_rows, columns=COLUMNS), _cosmosqa, LETTERS)
"""Case with four answers, and the letter of the gold one."""

MARK = "####"
"""Mark between the solution and the gold number."""


def _gsm8k(row: Row) -> Iterator[ParsedCase]:
    """Case, and the gold number as in the file."""
    row.require(("question", "answer"))
    case = Case(id=row.identity(), question=row.text("question"), domain="mathematics")
    number = None
    if not is_absent(row.values.get("answer")):
        _, mark, number = row.text("answer").rpartition(MARK)
        if not mark or stated_number(number) is None:
            expected = f"expected a solution that ends in `{MARK} ` and a number"
            raise row.error("answer", f"{expected}, found {shown(number[-40:])}")
    yield ParsedCase(case, number and number.strip(), Reference(scoring="number"))


GSM8K = FileLayout(jsonl_rows, _gsm8k)
"""Word problems, whose answers are compared as numbers."""

LABELS = ("Yes", "No")
"""Answers of a yes/no task."""


def _boolq(row: Row) -> Iterator[ParsedCase]:
    """`question` and `answer` are required, `passage`, `title` and `id` optional, and others ignored."""
    row.require(("question", "answer"))
    answer = row.values["answer"]
    if not (isinstance(answer, bool) or is_absent(answer)):
        raise row.error("answer", f"expected true or false, found {shown(answer)}")
    case = Case(
        id=row.identity(),
        question=row.text("question"),
        labels=LABELS,
        passage=row.text("passage", default=""),
        title=row.text("title", default=""),
    )
    yield ParsedCase(case, LABELS[not answer] if isinstance(answer, bool) else None)


BOOLQ = FileLayout(jsonl_rows, _boolq, LABELS)
"""Yes/no questions about a passage."""


def _nq(row: Row) -> Iterator[ParsedCase]:
    """Case with all its accepted answers; `passage`, `title` and `id` are optional, as in the public files."""
    row.require(("question", "answer"))
    case = Case(
        id=row.identity(),
        question=row.text("question"),
        passage=row.text("passage", default=""),
        title=row.text("title", default=""),
        domain="factual QA",
    )
    accepted = _accepted(row)
    yield ParsedCase(case, next(iter(accepted), None), Reference(scoring="short answer", accepted=accepted))


def _accepted(row: Row) -> tuple[str, ...]:
    """Answers of a list or of a single text; empty for absent ones, see `is_absent`."""
    value = row.values.get("answer")
    if isinstance(value, list) and len(value) == 1 and not is_blank(value[0]):
        value = value[0]
    if is_absent(value):
        return ()
    return (row.text("answer"),) if isinstance(row.values.get("answer"), str) else row.texts("answer")


def _nq_claims(row: Row) -> Iterator[ParsedCase]:
    """Claim that the first accepted answer is right; a question without one makes no claim."""
    for case, answer, _ in _nq(row):
        if answer is not None:
            claim = answered_claim(case.question, answer)
            yield claim_case(claim, SUPPORTED, id=case.id, passage=case.passage, title=case.title)


NQ = {"questions": FileLayout(jsonl_rows, _nq), "claims": FileLayout(jsonl_rows, _nq_claims, CLAIM_LABELS)}
"""Questions with short answers, of which several may be right; the option `as` can turn them into claims."""


def nq_task(source: Source, spec: str, name: str, **options: str) -> Task:
    """Task over NQ-open; `open_task("nq:PATH")` is the usual way to it.

    Raises:
        ConfigError: the option `as` is neither `questions` nor `claims`.
    """
    kind = options.get("as", "questions")
    if kind not in NQ:
        raise ConfigError(f"task 'nq': `as` is one of questions and claims, not {kind!r}")
    return NQ[kind].task(source, spec, name)
