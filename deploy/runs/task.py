"""Task of a run: opened in the form that the protocol needs, with the cases' pictures, and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case, Image, LabelledCase
from moot.protocols.claims import is_claim
from moot.protocols.errors import ConfigError
from moot.protocols.tasks import Task, open_task
from moot.protocols.tasks.registry import TASKS
from moot.protocols.tasks.spec import TaskSpec


def as_claim_task(spec: str) -> str:
    """Spec of the same task with its cases as claims, if it has several forms; else unchanged.

    Raises:
        ConfigError: an option is unknown.

    >>> as_claim_task("nq:NQ-open.dev.jsonl"), as_claim_task("fever:dev.jsonl")
    ('nq:NQ-open.dev.jsonl:as=claims', 'fever:dev.jsonl')
    """
    parsed = TaskSpec.parse(spec)
    kind = TASKS.get(parsed.name)
    if kind is None or not parsed.path or "as" not in kind.options:
        return spec
    parsed = parsed.with_options(kind.options)
    return str(replace(parsed, options={**parsed.options, "as": "claims"}))


def claim_forms() -> list[str]:
    """Forms of the tasks whose cases are claims."""
    forms = (kind.form for kind in TASKS.values() if kind.claims)
    return [form.replace("[", "").replace("]", "") if "as=claims" in form else form.split("[")[0] for form in forms]


Cases = Task | Sequence[LabelledCase | Mapping[str, object]]
"""Cases that are given as Python objects."""


def open_task_for(spec: str, protocol: DebateProtocol) -> Task:
    """Open a task in the form that the protocol needs; see `open_task`."""
    return open_task(as_claim_task(spec) if protocol.needs_claims else spec, _load_picture)


def _load_picture(file: Path | bytes) -> Image:
    from moot.actors.models.pictures import load_image

    return load_image(file)


def check_first_case(protocol: DebateProtocol, task: Task) -> None:
    """Check that the protocol supports the task's first case; later unsupported cases fail on their own.

    Raises:
        ConfigError: it does not; names suitable tasks.
    """
    if task.replayable and (protocol.needs_labels or protocol.needs_reply or protocol.needs_claims):
        check_case(protocol, next(task.cases()).case)


def check_case(protocol: DebateProtocol, case: Case) -> None:
    """Check that the protocol supports a case.

    Raises:
        ConfigError: it does not; names suitable tasks.
    """
    if protocol.needs_reply and case.judged is None:
        raise ConfigError(
            f"protocol {protocol.name!r} judges replies, and case {case.id!r} is not one: use --task replies:PATH"
        )
    if protocol.needs_labels and case.labels is None:
        raise ConfigError(
            f"protocol {protocol.name!r} debates over a list of labels, and case {case.id!r} has none: take a task "
            "with labels, or give some with --labels"
        )
    if protocol.needs_claims and not is_claim(case):
        raise ConfigError(
            f"protocol {protocol.name!r} checks claims, and case {case.id!r} is not one: use one of the tasks "
            f"{', '.join(claim_forms())}"
        )


def content_case_id(case: Case) -> str:
    """Content-based id of a submitted case without an id: 16 hex digits."""
    return case.content_hash()[:16]


def task_from_cases(cases: Cases) -> Task:
    """Task from cases given as objects, with their pictures.

    Raises:
        ConfigError: they are not cases, or a picture cannot be read.
    """
    if isinstance(cases, Task):
        return replace(cases, load_picture=cases.load_picture or _load_picture)
    if not isinstance(cases, Iterable):
        raise ConfigError(f"expected a spec such as boolq:PATH, a Task or a list of cases as `task`, not {cases!r}")
    return Task.from_cases([_with_pictures(case) for case in cases])


def _with_pictures(case: LabelledCase | Mapping[str, object]) -> LabelledCase | Mapping[str, object]:
    """The case with the pictures that it gives as file, URL or bytes loaded; a task itself reads none."""
    if not isinstance(case, Mapping):
        return case
    given = case.get("images")
    if not isinstance(given, list | tuple):
        return case
    from moot.actors.models.pictures import load_images

    to_load = [index for index, image in enumerate(given) if isinstance(image, str | bytes | Path)]
    loaded = dict(zip(to_load, load_images([given[index] for index in to_load]), strict=True))
    return {**case, "images": [loaded.get(index, image) for index, image in enumerate(given)]}
