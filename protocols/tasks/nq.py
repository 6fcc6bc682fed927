"""NQ-open as it is downloaded: questions with short answers, of which several may be right, as JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from moot.protocols.case import Case, Reference
from moot.protocols.claims import SUPPORTED, answered_claim
from moot.protocols.errors import ConfigError
from moot.protocols.tasks.claim_rows import Claim, claims_task
from moot.protocols.tasks.formats import jsonl_rows
from moot.protocols.tasks.row import Row, is_absent, is_blank
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task


def nq_task(source: Source, spec: str, kind: str = "questions") -> Task:
    """A task over NQ-open; `open_task("nq:PATH")` is the usual way to it.

    Args:
        source: the file.
        spec: as the user wrote it.
        kind: `questions`, or `claims`: that the first accepted answer is right, which is true of all of them.

    Raises:
        ConfigError: `kind` is something else.
    """
    if kind not in ("questions", "claims"):
        raise ConfigError(f"task 'nq': `as` is one of questions and claims, not {kind!r}")
    if kind == "claims":
        return claims_task(
            partial(jsonl_rows, source),
            _claims,
            name="nq",
            spec=spec,
            path=source.file,
            replayable=source.replayable,
        )
    return Task(
        spec=spec,
        name="nq",
        path=source.file,
        labels=None,
        replayable=source.replayable,
        read=partial(jsonl_rows, source),
        parse=parse_nq,
        refer=refer_nq,
    )


def parse_nq(row: Row, default_id: str) -> tuple[Case, str | None]:
    """Gives a case, its texts untouched, and the first accepted answer; None where there is none; see `is_absent`.

    `passage`, `title` and `id` may be missing, as they are in the public files; one answer may be a plain text.

    Raises:
        TaskFileError: a field is missing, empty or of the wrong type.
    """
    row.require(("question", "answer"))
    case = Case(
        id=row.identity(default_id),
        question=row.text("question"),
        passage=row.text("passage", default=""),
        title=row.text("title", default=""),
        domain="factual QA",
    )
    return case, next(iter(_accepted(row)), None)


def refer_nq(row: Row) -> Reference:
    """All accepted answers of a row.

    Raises:
        TaskFileError: `answer` is neither text nor a list of texts.
    """
    return Reference(scoring="short answer", accepted=_accepted(row))


def _accepted(row: Row) -> tuple[str, ...]:
    value = row.values.get("answer")
    if isinstance(value, list) and len(value) == 1 and not is_blank(value[0]):
        value = value[0]
    if is_absent(value):
        return ()
    return (row.text("answer"),) if isinstance(row.values.get("answer"), str) else row.texts("answer")


def _claims(row: Row) -> Iterator[Claim]:
    """The claim of a question that has an answer; one without has nothing to claim."""
    case, answer = parse_nq(row, "question")
    if answer is not None:
        yield Claim(
            text=answered_claim(case.question, answer),
            gold=SUPPORTED,
            id=row.identity() if "id" in row.values else "",
            passage=case.passage,
            title=case.title,
        )
