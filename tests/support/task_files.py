"""Files of cases for tests, and the errors of invalid ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from places import DATA as DATA

from moot.protocols.case import Image, LabelledCase
from moot.protocols.errors import TaskFileError, UserError
from moot.protocols.tasks import Task, TaskSummary, open_task

Write = Callable[..., str]
Load = Callable[[Path | bytes], Image]


def jsonl(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def article(*votes: Sequence[object], text: str = "News.") -> dict[str, Any]:
    """Row of QAGS: an article and the votes on each sentence of its summary."""
    sentences = [
        {"sentence": f"S{n}.", "responses": [{"worker_id": w, "response": vote} for w, vote in enumerate(each)]}
        for n, each in enumerate(votes)
    ]
    return {"article": text, "summary_sentences": sentences}


def cases(task: str | Task, load: Load | None = None) -> list[LabelledCase]:
    return list((open_task(task, load) if isinstance(task, str) else task).cases())


def summary(task: str | Task, load: Load | None = None) -> TaskSummary:
    found = (open_task(task, load) if isinstance(task, str) else task).validate()
    assert found is not None
    return found


def fails(task: str | Task, line: int, field: str, expected: str, *, file: str = "", load: Load | None = None) -> None:
    """Assert that a task's file, or this file in its folder, is invalid at this location, with a one-line error."""
    with pytest.raises(TaskFileError) as caught:
        (open_task(task, load) if isinstance(task, str) else task).validate()
    error = caught.value
    assert (error.line, error.field) == (line, field), error
    assert error.file.startswith(task.split(":")[1] if isinstance(task, str) else task.path)
    assert error.file.endswith(file)
    assert expected in error.expected
    assert "\n" not in str(error)


def refused(spec: str, load: Load | None = None) -> str:
    """Error message of an invalid task."""
    with pytest.raises(UserError) as caught:
        open_task(spec, load).validate()
    said = str(caught.value)
    assert "\n" not in said
    return said
