"""The tasks that a spec such as `boolq:PATH` can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.tasks.boolq import boolq_task
from moot.protocols.tasks.cosmosqa import cosmosqa_task
from moot.protocols.tasks.labelled_texts import labelled_texts_task
from moot.protocols.tasks.replies import replies_task
from moot.protocols.tasks.sample import sample_replies_task, sample_subjects_task, sample_symptoms_task, sample_task
from moot.protocols.tasks.source import Source, locate
from moot.protocols.tasks.subjects import subjects_task
from moot.protocols.tasks.symptoms import symptoms_task
from moot.protocols.tasks.task import Task


@dataclass(frozen=True)
class TaskKind:
    """A built-in task, as the documentation lists it.

    Attributes:
        name: what a spec begins with.
        form: how a spec is written.
        about: what is debated, in one line.
        layout: what the file must hold; empty for a task that takes none.
        opener: gives the task of a path and a spec; of neither for a task that takes no path.
    """

    name: str
    form: str
    about: str
    layout: str = ""
    opener: Callable[..., Task] = field(kw_only=True, repr=False, compare=False)


def _of_file(task: Callable[[Source, str], Task]) -> Callable[[str, str], Task]:
    return lambda path, spec: task(locate(path), spec)


TASKS: Mapping[str, TaskKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            TaskKind("sample", "sample", "72 yes/no questions with passages, bundled with moot", opener=sample_task),
            TaskKind(
                "sample-replies",
                "sample-replies",
                "12 replies to judge, good and bad, bundled with moot",
                opener=sample_replies_task,
            ),
            TaskKind(
                "sample-subjects",
                "sample-subjects",
                "8 subjects to debate, some with facts, bundled with moot",
                opener=sample_subjects_task,
            ),
            TaskKind(
                "sample-symptoms",
                "sample-symptoms",
                "40 made-up complaints, ten conditions as labels, bundled with moot",
                opener=sample_symptoms_task,
            ),
            TaskKind(
                "boolq",
                "boolq:PATH",
                "BoolQ: yes/no questions about a passage",
                "JSON Lines: question, title (may be missing), answer (true/false), passage; optional id",
                opener=_of_file(boolq_task),
            ),
            TaskKind(
                "cosmosqa",
                "cosmosqa:PATH",
                "CosmosQA: four answers to a question about a short story, labels A to D",
                "CSV or JSON Lines: id, context, question, answer0 to answer3, label (0-3, empty or missing)",
                opener=_of_file(cosmosqa_task),
            ),
            TaskKind(
                "labels",
                "labels:PATH",
                "texts, and the label that fits each best, of up to 200 that the file names",
                "CSV or JSON Lines: text, label; optional aliases, id, question, documents",
                opener=_of_file(labelled_texts_task),
            ),
            TaskKind(
                "replies",
                "replies:PATH",
                "replies that were given elsewhere, for judges only",
                "CSV or JSON Lines: reply; optional id, prompt, system, evidence, role, domain, group",
                opener=_of_file(replies_task),
            ),
            TaskKind(
                "subjects",
                "subjects:PATH",
                "subjects without a right answer",
                "CSV or JSON Lines: subject; optional id, facts. Or .txt: one subject a line",
                opener=_of_file(subjects_task),
            ),
            TaskKind(
                "symptoms",
                "symptoms:DIR",
                "the public table of symptoms: each distinct set of symptoms once, 41 diseases, balanced",
                "the downloaded folder: dataset.csv and, for documents, symptom_Description.csv",
                opener=symptoms_task,
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
        TaskFileError: there is no such file or folder, it is the other one of the two, or the task must read twice
            what can be read only once.

    >>> open_task("sample").labels
    ('Yes', 'No')
    """
    name, colon, path = spec.partition(":")
    kind = TASKS.get(name)
    if kind is None:
        raise unknown_name("task", name, TASKS)
    if ":" not in kind.form:
        if colon:
            raise ConfigError(f"task {name!r} takes no path: write `{kind.form}`")
        return kind.opener()
    if not path:
        raise ConfigError(f"task {name!r} needs a path: write `{kind.form}`")
    return kind.opener(path, spec)
