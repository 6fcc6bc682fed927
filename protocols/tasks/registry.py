"""The tasks that a spec such as `boolq:PATH` can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.tasks.boolq import boolq_task
from moot.protocols.tasks.cosmosqa import cosmosqa_task
from moot.protocols.tasks.sample import sample_task
from moot.protocols.tasks.source import Source, locate
from moot.protocols.tasks.task import Task


@dataclass(frozen=True)
class TaskKind:
    """A built-in task, as the documentation lists it.

    Attributes:
        name: what a spec begins with.
        form: how a spec is written.
        about: what is debated, in one line.
        layout: what the file must hold; empty for a task that takes none.
    """

    name: str
    form: str
    about: str
    layout: str = ""
    opener: Callable[[Source, str], Task] | None = field(default=None, repr=False, compare=False)


TASKS: Mapping[str, TaskKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            TaskKind("sample", "sample", "72 yes/no questions with passages, bundled with moot"),
            TaskKind(
                "boolq",
                "boolq:PATH",
                "BoolQ: yes/no questions about a passage",
                "JSON Lines: question, title (may be missing), answer (true/false), passage; optional id",
                boolq_task,
            ),
            TaskKind(
                "cosmosqa",
                "cosmosqa:PATH",
                "CosmosQA: four answers to a question about a short story, labels A to D",
                "CSV or JSON Lines: id, context, question, answer0 to answer3, label (0-3, empty or missing)",
                cosmosqa_task,
            ),
        )
    }
)
"""The built-in tasks by name."""


def open_task(spec: str) -> Task:
    """The task that a spec names; nothing of its content is read yet.

    Args:
        spec: `NAME` or `NAME:PATH`, split at the first colon; the path `-` is standard input.

    Raises:
        ConfigError: no such task, or a path is missing or not wanted.
        TaskFileError: there is no such file, or it is a folder.

    >>> open_task("sample").labels
    ('Yes', 'No')
    """
    name, colon, path = spec.partition(":")
    kind = TASKS.get(name)
    if kind is None:
        raise unknown_name("task", name, TASKS)
    if kind.opener is None:
        if colon:
            raise ConfigError(f"task {name!r} takes no path: write `{kind.form}`")
        return sample_task()
    if not path:
        raise ConfigError(f"task {name!r} needs a path: write `{kind.form}`")
    return kind.opener(locate(path), spec)
