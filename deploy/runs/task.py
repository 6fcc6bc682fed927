"""The task of a run: opened for its protocol, with the pictures that its cases name, and checked against it."""

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
    """The spec of the same task's cases as claims, where it has another kind of them, too; else as it is.

    Raises:
        ConfigError: an option is unknown.

    >>> as_claim_task("nq:NQ-open.dev.jsonl"), as_claim_task("fever:dev.jsonl")
    ('nq:NQ-open.dev.jsonl:as=claims', 'fever:dev.jsonl')
    """
    found = TaskSpec.parse(spec)
    kind = TASKS.get(found.name)
    if kind is None or not found.path or "as" not in kind.options:
        return spec
    found = found.with_options(kind.options)
    return str(replace(found, options={**found.options, "as": "claims"}))


def claim_forms() -> list[str]:
    """How the tasks are written whose cases are claims. Raises nothing."""
    forms = (kind.form for kind in TASKS.values() if kind.claims)
    return [form.replace("[", "").replace("]", "") if "as=claims" in form else form.split("[")[0] for form in forms]


Cases = Task | Sequence[LabelledCase | Mapping[str, object]]
"""Cases that are brought as Python objects."""


def open_task_for(spec: str, protocol: DebateProtocol) -> Task:
    """The task behind a spec, in the form that the protocol needs; see `open_task`."""
    return open_task(as_claim_task(spec) if protocol.needs_claims else spec, _load_picture)


def _load_picture(file: Path | bytes) -> Image:
    from moot.actors.models.pictures import load_image

    return load_image(file)


def check_first_case(protocol: DebateProtocol, task: Task) -> None:
    """Refuse a task that the protocol has no use for, as far as its first case tells; later ones fail by themselves.

    Raises:
        ConfigError: naming the tasks that would do.
    """
    if task.replayable and (protocol.needs_labels or protocol.needs_reply or protocol.needs_claims):
        check_case(protocol, next(task.cases()).case)


def check_case(protocol: DebateProtocol, case: Case) -> None:
    """Refuse a case that the protocol has no use for.

    Raises:
        ConfigError: naming the tasks that would do.
    """
    if protocol.needs_reply and case.judged is None:
        raise ConfigError(
            f"protocol {protocol.name!r} judges replies, and case {case.id!r} is none: take --task replies:PATH"
        )
    if protocol.needs_labels and case.labels is None:
        raise ConfigError(
            f"protocol {protocol.name!r} debates over a list of labels, and case {case.id!r} has none: take a task "
            "with labels, or give some with --labels"
        )
    if protocol.needs_claims and not is_claim(case):
        raise ConfigError(
            f"protocol {protocol.name!r} checks claims, and case {case.id!r} is none: take one of the tasks "
            f"{', '.join(claim_forms())}"
        )


def content_case_id(case: Case) -> str:
    """What a case that brings no id is known by, where cases come one by one: 16 hex digits of its content."""
    return case.content_hash()[:16]


def task_from_cases(cases: Cases) -> Task:
    """The task of cases that are brought as objects, with their pictures.

    Raises:
        ConfigError: they are no cases, or a picture cannot be read.
    """
    if isinstance(cases, Task):
        return replace(cases, load_picture=cases.load_picture or _load_picture)
    if not isinstance(cases, Iterable):
        raise ConfigError(f"expected a spec such as boolq:PATH, a Task or a list of cases as `task`, not {cases!r}")
    return Task.from_cases([_with_pictures(case) for case in cases])


def _with_pictures(case: LabelledCase | Mapping[str, object]) -> LabelledCase | Mapping[str, object]:
    """The case with the pictures that it names by file, address or bytes read; a task itself reads none."""
    if not isinstance(case, Mapping):
        return case
    given = case.get("images")
    if not isinstance(given, list | tuple):
        return case
    from moot.actors.models.pictures import load_images

    named = [place for place, image in enumerate(given) if isinstance(image, str | bytes | Path)]
    loaded = dict(zip(named, load_images([given[place] for place in named]), strict=True))
    return {**case, "images": [loaded.get(place, image) for place, image in enumerate(given)]}
