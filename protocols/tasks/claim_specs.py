"""Specs of the tasks whose cases are claims: how they are written, and how another spec is made one of them."""

from __future__ import annotations

from dataclasses import replace

from moot.protocols.tasks.registry import TASKS
from moot.protocols.tasks.spec import TaskSpec


def as_claims(spec: str) -> str:
    """The spec of the same task's cases as claims, where it has another kind of them, too; else as it is.

    Raises:
        ConfigError: an option is unknown.

    >>> as_claims("nq:NQ-open.dev.jsonl"), as_claims("fever:dev.jsonl")
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
