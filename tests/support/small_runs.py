"""Small runs on any runtime, and readers of their records."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.engine import Runtime
from moot.actors.debate.inline_engine import InlineRuntime
from moot.actors.debate.pending_decisions import Person
from moot.actors.debate.run_spec import RunSpec
from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.dispatch.dispatcher import Dispatcher
from moot.actors.models.retry import RetryPolicy
from moot.actors.record.folder import RunFolder
from moot.actors.record.ownership import Ownership
from moot.actors.record.progress import Counts
from moot.actors.record.schema import KEYS, TABLES, stable_columns
from moot.actors.record.tables import read_table
from moot.actors.telemetry.log import configure_unless_done
from moot.protocols.base import DebateProtocol
from moot.protocols.case import LabelledCase
from moot.protocols.templates import Templates

RUNTIMES = ("inline", "packed", "actors")
APART = ("inline", "actors")
"""The two most different runtimes, for tests that compare what a protocol records."""
ENCODER = "hashed-ngrams-512-v1"
QUICK = RetryPolicy(max_attempts=3, base_s=0.01, cap_s=0.02, total_s=30.0)


@dataclass(frozen=True)
class FinishedRun:
    """Finished run: its folder, pending decisions, and final totals."""

    folder: Path
    parked: list[str]
    counts: Counts

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Rows of a table, sorted by key."""
        return sorted_rows(self.folder, table)

    def verdict(self, case_id: str) -> dict[str, Any]:
        """The only verdict of a case, with its payload decoded."""
        found = [row for row in self.rows("verdicts") if row["case_id"] == case_id]
        assert len(found) == 1, (case_id, found)
        return found[0] | {"payload": json.loads(found[0]["payload"] or "null")}

    def turns(self, case_id: str) -> dict[str, dict[str, Any]]:
        """Turns of a case by path, without superseded ones."""
        return {r["path"]: r for r in self.rows("turns") if r["case_id"] == case_id and not r["superseded"]}

    def events(self, case_id: str, kind: str) -> list[dict[str, Any]]:
        """Events of a case of one kind."""
        return [row for row in self.rows("events") if (row["case_id"], row["kind"]) == (case_id, kind)]


def sorted_rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """Rows of a table, sorted by key."""
    rows: list[dict[str, Any]] = read_table(folder, table).to_pylist()
    return sorted(rows, key=lambda row: tuple(row[name] for name in KEYS[table]))


def stable_rows(folder: Path, table: str, without: Iterable[str] = ()) -> list[str]:
    """Every non-volatile column of a table as sorted texts, so that NaN equals NaN and -0.0 does not equal 0.0."""
    names = [name for name in stable_columns(table) if name not in set(without)]
    found = read_table(folder, table).select(names).to_pylist()
    key = [name for name in KEYS[table] if name in names]
    return [repr(row) for row in sorted(found, key=lambda row: (tuple(row[name] for name in key), repr(row)))]


def assert_equal_records(one: Path, other: Path, without: Iterable[str] = ()) -> None:
    """Assert that records are equal in every non-volatile column of every table, except the columns `without`."""
    for table in TABLES:
        _assert_equal_rows(table, stable_rows(one, table, without), stable_rows(other, table, without))


def assert_same_but_unpaid(one: Path, other: Path) -> None:
    """Assert that records are equal in every non-volatile column, except for events `asked` of paid requests."""
    for table in TABLES:
        kept = [[row for row in stable_rows(folder, table) if "'kind': 'asked'" not in row] for folder in (one, other)]
        _assert_equal_rows(table, *kept)


def _assert_equal_rows(table: str, left: list[str], right: list[str]) -> None:
    """Assert that rows are equal; the message names the first row that only one side has."""
    lacking = [sorted((Counter(some) - Counter(others)).elements()) for some, others in ((left, right), (right, left))]
    shown = "\n".join(f"only {side}: {rows[0]}" for side, rows in zip(("left", "right"), lacking, strict=True) if rows)
    assert not shown, (
        f"{table}: {len(left)} and {len(right)} rows, of which differ {[len(rows) for rows in lacking]}\n{shown}"
    )


def same_model_roles(model: str, **settings: Any) -> dict[str, list[RoleBinding]]:
    """Agents and one judge on the same model."""
    return {
        "agent": [RoleBinding(model=model, top_logprobs=5, **settings)],
        "judge": [RoleBinding(model=model, **settings)],
    }


def make_spec(folder: Path, roles: Mapping[str, Sequence[RoleBinding]], **changes: Any) -> RunSpec:
    """Spec of a run with defaults for tests; `templates` are added to the package's own."""
    templates = Templates().sources | dict(changes.pop("templates", {}))
    values: dict[str, Any] = {
        "protocol": "test",
        "roles": {name: list(members) for name, members in roles.items()},
        "task": "memory:tests",
        "key": {},
        "seed": 1,
        "encoder": ENCODER,
        "folder": str(folder),
        "epoch": 1,
        "retry": QUICK,
    }
    return RunSpec.model_validate(values | {"templates": templates} | changes)


def make_runtime(kind: str, spec: RunSpec, protocol: DebateProtocol, moderators: int = 2) -> Runtime:
    """Runtime of that kind; on Ray with two moderators by default."""
    if kind == "inline":
        return InlineRuntime(spec, protocol)
    from moot.actors.remote.runtime import RayRuntime

    assert kind in ("packed", "actors")
    placement: Any = kind
    cluster = spec.cluster.model_copy(update={"moderators": moderators})
    return RayRuntime(spec.model_copy(update={"cluster": cluster}), protocol, placement=placement)


async def run_debates(
    kind: str,
    folder: Path,
    protocol: DebateProtocol,
    cases: Iterable[LabelledCase],
    roles: Mapping[str, Sequence[RoleBinding]],
    *,
    max_open: int = 100,
    moderators: int = 2,
    retry_failed: bool = False,
    meanwhile: Callable[[Dispatcher], Any] | None = None,
    person: Person | None = None,
    **changes: Any,
) -> FinishedRun:
    """Run debates in `folder`, or resume them, like the driver of a run.

    Args:
        meanwhile: coroutine function of the dispatcher that runs concurrently.
        person: decides on forms during the run.
        changes: fields of `RunSpec`.
    """
    configure_unless_done()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.yaml").write_text("test: true\n")
    owner = Ownership.acquire(RunFolder(folder))
    try:
        spec = make_spec(folder, roles, epoch=owner.epoch, max_open=max_open, **changes)
        runtime = make_runtime(kind, spec, protocol, moderators)
        try:
            await runtime.start()
            dispatcher = Dispatcher(runtime, iter(list(cases)), completed_cases(folder, retry_failed), person)
            beside = asyncio.ensure_future(meanwhile(dispatcher)) if meanwhile else None
            await dispatcher.run()
            if beside is not None:
                await beside
            counts = await runtime.writers.counts()
        finally:
            await runtime.stop()
    finally:
        owner.release()
    return FinishedRun(folder, sorted(dispatcher.parked), counts)


def completed_cases(folder: Path, retry_failed: bool = False) -> CompletedCases:
    """Completed cases of a record."""
    verdicts = read_table(folder, "verdicts", ["failed"]).to_pylist()
    content = read_table(folder, "cases", ["content_hash"]).to_pylist()
    return CompletedCases(
        {(row["case_id"], row["attempt"]): row["failed"] for row in verdicts},
        {row["case_id"]: row["content_hash"] for row in content},
        retry_failed=retry_failed,
    )
