"""Record state: a snapshot of a run's record, each table read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.dispatch.completed_cases import CompletedCases
from moot.actors.record.folder import RunFolder
from moot.actors.record.schema import CANCELLED, RESUMED, CaseKey
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.replies import USABLE
from moot.deploy.results.record import withdrawn_cases
from moot.deploy.runs.prepare import Prepared
from moot.protocols.case import is_shared_id
from moot.protocols.messages import family_of

RecordFiles = frozenset[tuple[str, int]]
"""Names and sizes of a record's files; equal sets have equal content."""


_OF_TURNS = ["role", "model", "outcome", "reused_from", "prompt_tokens", "completion_tokens"]


@dataclass(frozen=True)
class RecordState:
    """Snapshot of a record. Reading it, `turns` included, may take long: do not call it on an event loop.

    Attributes:
        folder: the run's folder.
        verdicts: whether the attempt failed, by case id and attempt, for attempts with a verdict.
        content: content hash by case id.
        files: the files that were read, see `is_current`.
    """

    folder: RunFolder
    verdicts: Mapping[CaseKey, bool]
    content: Mapping[str, str]
    files: RecordFiles | None

    @classmethod
    def read(cls, folder: RunFolder) -> RecordState:
        """Read the current state.

        Raises:
            RecordError: there is no run in the folder, or it cannot be read.
        """
        files = record_files(folder)  # before the tables, so that rows added meanwhile make the state outdated
        verdicts, cases = read_table(folder, "verdicts", ["failed"]), read_table(folder, "cases", ["content_hash"])
        failed = {(row["case_id"], row["attempt"]): row["failed"] for row in verdicts.to_pylist()}
        return cls(folder, failed, {row["case_id"]: row["content_hash"] for row in cases.to_pylist()}, files)

    def is_current(self) -> bool:
        """Whether the record is unchanged since it was read, so that a new owner need not read it again."""
        return self.files is not None and self.files == record_files(self.folder)

    def completed(self, *, retry_failed: bool) -> CompletedCases:
        """Completed cases, which do not run again."""
        return CompletedCases(self.verdicts, self.content, retry_failed=retry_failed)

    @cached_property
    def latest(self) -> dict[str, tuple[int, bool]]:
        """Last attempt with a verdict, and whether it failed, by case id."""
        latest: dict[str, tuple[int, bool]] = {}
        for (case_id, attempt), failed in self.verdicts.items():
            latest[case_id] = max(latest.get(case_id, (-1, False)), (attempt, failed))
        return latest

    @cached_property
    def turns(self) -> pa.Table:
        """Role, model, outcome and token use of each reply."""
        return read_table(self.folder, "turns", _OF_TURNS)

    def proven_roles(self) -> set[str]:
        """Role families that have had a usable reply."""
        turns = self.turns.group_by(["role", "outcome"]).aggregate([])
        return {family_of(row["role"] or "") for row in turns.to_pylist() if row["outcome"] in USABLE}

    def in_progress(self) -> set[str]:
        """Ids of interrupted cases: those with replies after the last attempt with a verdict, and not withdrawn."""
        last = self.turns.group_by("case_id").aggregate([("attempt", "max")]).to_pylist()
        of_cases = (row for row in last if not is_shared_id(row["case_id"]))
        none = (-1, False)
        begun = {row["case_id"] for row in of_cases if row["attempt_max"] > self.latest.get(row["case_id"], none)[0]}
        kinds = pc.field("kind").isin(pa.array([CANCELLED, RESUMED]))
        return begun - withdrawn_cases(read_table(self.folder, "events", ["data"], kinds))


def record_files(folder: RunFolder) -> RecordFiles | None:
    """Names and sizes of all segments and committed parts; files are only added, and segments only grow. None if a file
    disappears meanwhile."""
    files = [*folder.journal.glob("*.arrows"), *folder.parts.glob("*.json")]
    try:
        return frozenset((file.name, file.stat().st_size) for file in files)
    except OSError:
        return None


def remaining_cases(prepared: Prepared, completed: CompletedCases) -> int | None:
    """Number of cases without a verdict; None for a source that cannot be read twice.

    Raises:
        RunMismatch: a case's content has changed since the run began.
    """
    if prepared.checked is None:
        return None
    return sum(completed.assignment(labelled) is not None for labelled in prepared.cases())
