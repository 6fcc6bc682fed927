"""Classification tasks: texts, and a closed set of labels from the file itself."""

from __future__ import annotations

from collections.abc import Iterator

from moot.protocols.case import Case
from moot.protocols.errors import TaskFileError
from moot.protocols.tasks.formats import csv_or_jsonl_rows
from moot.protocols.tasks.label_set import LabelSet
from moot.protocols.tasks.row import ParsedCase, Row, is_absent, shown
from moot.protocols.tasks.source import Source
from moot.protocols.tasks.task import Task
from moot.protocols.tasks.unmapped import fixed_remarks

QUESTION = "Which of the labels fits the text best?"
"""Question for rows without one of their own."""

MAX_LABELS = 200
"""Most labels of a file, because every prompt lists them all."""

COLUMNS = ("text", "label")
"""Columns of a CSV; `aliases`, `id` and `question` are optional."""

_FIELDS = (*COLUMNS, "aliases", "id", "question", "documents")


def labelled_texts_task(source: Source, spec: str, name: str) -> Task:
    """Task over texts with labels; `open_task("labels:PATH")` is the usual way to it.

    Raises:
        TaskFileError: the source cannot be read twice.
    """
    if not source.replayable:
        expected = "expected a file: its labels must be known before the first case, so it is read twice"
        raise TaskFileError(source.file, 0, "", expected)
    texts = _LabelledTexts(source)
    return Task(
        spec,
        name,
        source.file,
        labels=None,
        replayable=True,
        read=texts.rows,
        parse=texts.parse,
        remarks=fixed_remarks(texts.rows, _FIELDS),
    )


class _LabelledTexts:
    """Rows of one file. Its labels, their aliases and the documents of all cases are gathered once, beforehand."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._labels: tuple[str, ...] = ()
        self._aliases: tuple[tuple[str, ...], ...] = ()
        self._documents: tuple[str, ...] = ()

    def rows(self) -> Iterator[Row]:
        """Rows that are cases.

        Raises:
            TaskFileError: the source cannot be read, or has too few or too many labels.
        """
        if not self._labels:
            self._gather()
        for row in csv_or_jsonl_rows(self._source, COLUMNS):
            if row.problem is not None or _has_text(row):
                yield row

    def parse(self, row: Row) -> Iterator[ParsedCase]:
        """Builds a case with its label, None for a row without one.

        The text is part of the question: nothing else distinguishes the cases of such a file.

        Raises:
            TaskFileError: a field has the wrong type, or the label came into the file after it was checked.
        """
        label = _label(row)
        if label is not None and label not in self._labels:
            raise row.error("label", f"expected a label that was there when the file was checked, found {shown(label)}")
        question = row.text("question", default="").strip() or QUESTION
        case = Case(
            id=row.identity(),
            question=f"{question}\n\n{row.text('text')}",
            labels=self._labels,
            aliases=self._aliases,
            documents=(*self._documents, *row.texts("documents")),
        )
        yield ParsedCase(case, label)

    def _gather(self) -> None:
        found, declared, documents = LabelSet(), dict[str, int](), list[str]()
        for row in csv_or_jsonl_rows(self._source, COLUMNS):
            if row.problem is not None:
                raise row.problem
            label = _label(row)
            if label is None:
                _check_unlabelled(row)
                continue
            found.add(row, label)
            if len(found) > MAX_LABELS:
                expected = f"expected at most {MAX_LABELS} labels, as every prompt lists them all; this is one more"
                raise row.error("label", expected)
            for alias in _aliases(row):
                found.add_alias(row, label, alias)
            if not _has_text(row):
                if label in declared:
                    expected = f"expected one row without text per label, {shown(label)} has line {declared[label]}"
                    raise row.error("label", expected)
                declared[label] = row.line
                documents += row.texts("documents")
        if len(found) < 2:
            raise TaskFileError(self._source.file, 0, "label", f"expected at least two labels, found {len(found)}")
        # every prompt lists the labels: in the order of their first case that list would reveal the gold column
        found.put_in_order(declared)
        self._labels, self._aliases, self._documents = found.labels, found.aliases, tuple(documents)


def _has_text(row: Row) -> bool:
    text = row.values.get("text")
    return text is not None and (not isinstance(text, str) or bool(text.strip()))


def _label(row: Row) -> str | None:
    """Label of the row without outer space; None when missing, null or blank: any word may be a label here."""
    if is_absent(value := row.values.get("label"), labels=[str(value)]):
        return None
    label = row.text("label").strip()
    # prompts list the labels on one line with ", " between them
    if ", " in label or len(label.splitlines()) > 1:
        raise row.error("label", f"expected a label without `, ` and line breaks, found {shown(label)}")
    return label


def _aliases(row: Row) -> tuple[str, ...]:
    return tuple(alias.strip() for alias in row.listed("aliases"))


def _check_unlabelled(row: Row) -> None:
    if not _has_text(row):
        raise row.error("text", "expected a text, a label or both, found neither")
    if _aliases(row):
        raise row.error("aliases", "expected a label that they are spellings of, found none")
